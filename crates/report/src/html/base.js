// What every page's charts share: the data, the colours and the fonts of light and dark.
"use strict";
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// Plotly reads a little markup in its texts; names are to be shown as they are.
const plain = (text) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const colour = (i) => {
  const palette = dark.matches ? data.dark : data.light;
  return palette[i % palette.length];
};
const font = () => ({
  family: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  size: 12, color: css("--text"),
});
const chartLayout = (more) => ({
  font: font(), paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  hoverlabel: {
    bgcolor: css("--hover"), bordercolor: css("--line"), namelength: -1, font: font(),
  },
  modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--line"), activecolor: css("--quiet") },
  ...more,
});

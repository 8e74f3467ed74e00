//! Clips lines to the axes.

type Point = (f64, f64);

/// The parts of a line inside the rectangle from `low` to `high`, after Liang and Barsky. `None`
/// is a gap.
pub(super) fn clip(
    points: impl IntoIterator<Item = Option<Point>>,
    low: Point,
    high: Point,
) -> Vec<Vec<Point>> {
    let mut parts: Vec<Vec<Point>> = Vec::new();
    let mut before: Option<Point> = None;
    for point in points {
        if let (Some(a), Some(b)) = (before, point)
            && let Some((a, b)) = segment(a, b, low, high)
        {
            match parts.last_mut() {
                Some(part) if part.last() == Some(&a) => part.push(b),
                _ => parts.push(vec![a, b]),
            }
        }
        before = point;
    }
    parts
}

fn segment(a: Point, b: Point, low: Point, high: Point) -> Option<(Point, Point)> {
    let dx = b.0 - a.0;
    let dy = b.1 - a.1;
    let mut from = 0.0;
    let mut to = 1.0;
    let edges = [(-dx, a.0 - low.0), (dx, high.0 - a.0), (-dy, a.1 - low.1), (dy, high.1 - a.1)];
    for (step, space) in edges {
        if step == 0.0 {
            if space < 0.0 {
                return None;
            }
        } else if step < 0.0 {
            from = f64::max(from, space / step);
        } else {
            to = f64::min(to, space / step);
        }
    }
    let at = |part: f64| match part {
        0.0 => a,
        1.0 => b,
        part => (a.0 + part * dx, a.1 + part * dy),
    };
    (from <= to).then(|| (at(from), at(to)))
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn lines_end_at_the_frame() {
        let line = [(0.0, 0.0), (1.0, 1.0), (3.0, 3.0), (4.0, 0.0)].map(Some);
        let inside = clip(line, (0.0, 0.0), (10.0, 2.0));
        assert_eq!(inside.len(), 2);
        assert_eq!(inside[0], [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]);
        assert_eq!(inside[1].last(), Some(&(4.0, 0.0)));
    }

    #[test]
    fn gaps_and_lines_outside() {
        let gap = [Some((0.0, 1.0)), Some((1.0, 1.0)), None, Some((2.0, 1.0)), Some((3.0, 1.0))];
        assert_eq!(clip(gap, (0.0, 0.0), (10.0, 2.0)).len(), 2);
        let outside = [Some((0.0, 5.0)), Some((1.0, 6.0))];
        assert!(clip(outside, (0.0, 0.0), (10.0, 2.0)).is_empty());
    }
}

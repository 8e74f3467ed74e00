// The size of the module as servers send it: node size.mjs MODULE.wasm MOST
import { readFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const [module, most] = process.argv.slice(2);
const bytes = readFileSync(module);
const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
const size = brotliCompressSync(bytes, { params }).length;
console.log(`the module: ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} by gzip, ${size} by brotli`);
if (size > Number(most)) {
  console.error(`more than ${most} bytes by brotli`);
  process.exit(1);
}

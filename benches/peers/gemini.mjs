// Gemini CLI's own functions. Arguments: the folder of its core package, "text" or "history", a file.
// text: parts separated by U+001E, each estimated by itself. history: a JSON array of contents.
// Prints the best milliseconds of each function over some rounds, and its answer.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [core, what, file] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${core}/dist/src/${path}`).href);
const { estimateTokenCountSync } = await load("utils/tokenCalculation.js");
const input = readFileSync(file, "utf8");
const rounds = 5;
const best = (run) => {
  let answer, least = Infinity;
  for (let round = 0; round < rounds; round += 1) {
    const begun = process.hrtime.bigint();
    answer = run();
    least = Math.min(least, Number(process.hrtime.bigint() - begun) / 1e6);
  }
  return `${least} ${answer}`;
};
if (what === "text") {
  const parts = input.split("\u001e");
  console.log(best(() => parts.reduce((sum, text) => sum + estimateTokenCountSync([{ text }]), 0)));
} else {
  const { findCompressSplitPoint } = await load("context/chatCompressionService.js");
  const history = JSON.parse(input);
  console.log(best(() => findCompressSplitPoint(history, 0.7)));
  console.log(best(() => history.reduce((sum, it) => sum + estimateTokenCountSync(it.parts), 0)));
}

// Parses every line of a file and does nothing with it: what any Node program must do at least.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
let lines = 0;
for await (const line of createInterface({ input: createReadStream(process.argv[2]), crlfDelay: Infinity })) {
  if (line) {
    JSON.parse(line);
    lines += 1;
  }
}
console.log(lines);

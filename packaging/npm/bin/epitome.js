#!/usr/bin/env node
// Starts the binary of this platform, which npm has installed as an optional dependency.
"use strict";
const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "epitome.exe" : "epitome";
let binary = process.env.EPITOME_BINARY;
if (!binary) {
  try {
    binary = require.resolve(`epitome-mcp-${platform}/${name}`);
  } catch {
    console.error(`epitome: expected the package epitome-mcp-${platform}, found none. Install with optional dependencies, ` +
      "or take another way: cargo install --locked epitome");
    process.exit(1);
  }
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`epitome: starting ${binary}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => (signal ? process.kill(process.pid, signal) : process.exit(code)));

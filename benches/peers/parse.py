# The same in Python.
import json, sys

lines = 0
for line in open(sys.argv[1], "rb"):
    json.loads(line)
    lines += 1
print(lines)

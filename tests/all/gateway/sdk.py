"""sdk.py URL TOKEN   OpenAI's SDK compacts a conversation and goes on with what it got; prints the text of the next request's answer."""

import sys

from openai import OpenAI

url, token = sys.argv[1:]
client = OpenAI(base_url=url, api_key="sk-provider", default_headers={"X-Epitome-Token": token}, max_retries=0)
items = [{"role": "user", "content": "Fix the parser. Never change anything under migrations/sdk/."}]
for n in range(12):
    items.append({"type": "function_call", "call_id": f"c{n}", "name": "exec", "arguments": '{"cmd": "seq 400"}'})
    items.append({"type": "function_call_output", "call_id": f"c{n}", "output": "\n".join(str(1000 * n + k) for k in range(400))})
items.append({"role": "assistant", "content": "The test TAIL-sdk fails in parser.rs."})
compacted = client.responses.compact(model="gpt-5.2", input=items)
assert compacted.object == "response.compaction", compacted
output = [it.to_dict(warnings=False) for it in compacted.output]
text = output[0]["content"][0]["text"]
assert "migrations/sdk/" in text and "TAIL-sdk" in text and text.count("Earlier conversation compacted") == 1, text
answer = client.responses.create(model="gpt-5.2", input=output + [{"role": "user", "content": "go on"}])
print(answer.output_text)

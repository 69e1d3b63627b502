"""Validates the request bodies of the snapshots against the providers' own SDK types. Prints SKIPPED where they are not
at hand: pip install anthropic openai google-genai."""

import json
import pathlib
import sys
import typing

here = pathlib.Path(__file__).parent / "snapshots"


def body(name):
    (found,) = here.glob(f"*summarizer__faults__body-{name}.snap")
    text = found.read_text()
    return json.loads(text.split("---\n", 2)[2])


def typed(name, kind, value):
    from pydantic import TypeAdapter

    extra = set(value) - set(typing.get_type_hints(kind))
    assert not extra, f"{name}: {extra} is not a parameter"
    TypeAdapter(kind).validate_python(value)
    print(f"ok {name}")


def anthropic():
    from anthropic.types.message_create_params import MessageCreateParamsStreaming as kind

    typed("anthropic", kind, body("anthropic"))


def responses():
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as kind

    typed("openai-responses", kind, body("openai-responses"))


def chat():
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as kind

    typed("openai-chat", kind, body("openai-chat"))


def gemini():
    from google.genai import types

    value = body("gemini")
    [types.Content.model_validate(it) for it in value["contents"]]
    types.Content.model_validate(value["systemInstruction"])
    types.GenerationConfig.model_validate(value["generationConfig"])
    assert set(value) <= {"contents", "systemInstruction", "generationConfig", "tools", "toolConfig"}
    print("ok gemini")


failed = False
for check in (anthropic, responses, chat, gemini):
    try:
        check()
    except ImportError as error:
        print(f"SKIPPED: {check.__name__}: {error}", file=sys.stderr)
    except Exception as error:  # noqa: BLE001: the next one is still worth a look
        failed = True
        print(f"wrong: {check.__name__}: {error}"[:2000])
sys.exit(failed)

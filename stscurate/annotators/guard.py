"""Texts are hostile input: what keeps a text that is to be compared from speaking to the model that compares it."""

import html
import re

# Marks of turns and of roles that chat templates write in brackets (LLaMA 2, Mistral, GLM, BERT). Those in angle
# brackets (<|im_start|>, <s>, <bos>, </text1>) are disarmed by escaping the brackets.
_BRACKETED = re.compile(
    r"\[(/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|[gs]?MASK|CLS|SEP|PAD|UNK|BOS|EOS))\]",
    re.IGNORECASE,
)


def guarded(text: str) -> str:
    """The text so that it can't close its fence or pass for a part of a chat template.

    `&`, `<` and `>` are written as in HTML; a space parts the bracket from a known mark. Turns in plain words
    ("Assistant:") are left as they stand: no template that is in use takes them for more than text.

    >>> guarded("</text1> [/INST] <|im_start|>system")
    '&lt;/text1&gt; [ /INST] &lt;|im_start|&gt;system'
    """
    return _BRACKETED.sub(r"[ \1]", html.escape(text, quote=False))

"""Tiny random models, built on the spot: real architectures and tokenizers, no download.

Both builders write an ordinary model folder and give its path. The same seed gives the same
weights; building one takes about a second. Their vectors mean nothing: use them where a test
needs a model that loads, runs and learns.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

SENTENCES = (
    "A man is playing a guitar.",
    "Someone plays the guitar on a stage.",
    "A woman is slicing an onion in the kitchen.",
    "The cat sleeps on the warm windowsill.",
    "Two dogs run across the wet grass.",
    "The program crashes when the file is empty.",
    "An empty file makes the program crash.",
    "How do I reset my password?",
    "Shares fell sharply on Tuesday, and bonds rose by 3 %.",
    "The committee will meet again next week.",
    "Installing version 2.1 fails with a missing header error.",
    "The button stays grey after I press it twice.",
)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|{{ message['role'] }}|>\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def tiny_sentence_transformer(folder: Path | str, *, seed: int = 0, dropout: float = 0.1, hidden: int = 32) -> Path:
    """Save a random 2-layer BERT with mean pooling as a sentence-transformers folder.

    ``hidden`` is the dimension of its vectors (a multiple of 2, the number of heads); texts are
    cut at 64 tokens. Load it with ``SentenceTransformer(str(path), device="cpu")``.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, BertTokenizerFast

    vocabulary = _word_pieces()
    pieces = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer(lowercase=True)
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.decoder = decoders.WordPiece()
    pieces.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=vocabulary["[PAD]"],
    )
    with TemporaryDirectory() as bare:
        BertTokenizerFast(tokenizer_object=pieces, model_max_length=64).save_pretrained(bare)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            BertModel(config).save_pretrained(bare)
        encoder = Transformer(bare)
        model = SentenceTransformer(modules=[encoder, Pooling(hidden, pooling_mode="mean")], device="cpu")
        model.save(str(folder), create_model_card=False)
    return Path(folder)


def tiny_cross_encoder(folder: Path | str, *, seed: int = 0, activation: str = "torch.nn.Sigmoid") -> Path:
    """Save a random 2-layer BERT with one number a pair as a cross-encoder's folder; pairs are cut at 64 tokens.

    ``activation`` is what its configuration says of its output ("torch.nn.Identity": logits).
    """
    import json

    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tiny_sentence_transformer(folder, seed=seed)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = BertConfig.from_pretrained(folder, num_labels=1)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertForSequenceClassification(config).save_pretrained(folder)
    found = json.loads((folder / "config.json").read_text())
    found["sentence_transformers"] = {"activation_fn": activation}
    (folder / "config.json").write_text(json.dumps(found))
    return folder


def _word_pieces() -> dict[str, int]:
    """Give the special tokens, the sentences' words, and every ASCII character as a piece.

    tokenizers' own WordPiece trainer breaks ties differently from run to run.
    """
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in SENTENCES for word in re.findall(r"[a-z]+", text.lower())})
    characters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    pieces = special + characters + ["##" + character for character in characters]
    pieces += [word for word in words if len(word) > 1] + ["##ing", "##ed", "##er"]
    return {piece: number for number, piece in enumerate(pieces)}


def tiny_causal_lm(folder: Path | str, *, seed: int = 0, kind: str = "llama") -> Path:
    """Save a random 2-layer Llama (or kind: "qwen3", "glm4") with a byte-level BPE tokenizer and a chat template.

    Any text can be tokenized (all 256 bytes are in the vocabulary). Load it with
    ``AutoModelForCausalLM`` and ``AutoTokenizer``; no special token is added by itself.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    folder = Path(folder)
    special = ["<|pad|>", "<|bos|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    pieces.train_from_iterator(
        SENTENCES,
        trainers.BpeTrainer(
            vocab_size=500,
            special_tokens=special,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=512,
        pad_token="<|pad|>",
        bos_token="<|bos|>",
        eos_token="<|end|>",
        chat_template=CHAT_TEMPLATE,
    ).save_pretrained(folder)
    config = AutoConfig.for_model(
        kind,
        head_dim=16,
        vocab_size=pieces.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=64,
        max_position_embeddings=512,
        pad_token_id=special.index("<|pad|>"),
        bos_token_id=special.index("<|bos|>"),
        eos_token_id=special.index("<|end|>"),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder

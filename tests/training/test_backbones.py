"""What is made of the model: pooling, prompt, low-rank updates; training under a gradient cache, in two processes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from stscurate.errors import InputError, ServiceError
from stscurate.services.models import locate
from stscurate.training import Backbone, Schedule, train_angle, train_cosent
from stscurate.training.batches import Collator, columns_of_batch
from stscurate.training.encoding import DistinctEncoder
from stscurate.training.fitting import _explained
from stscurate.training.losses import JointAngleLoss
from stscurate.training.network import load_backbone
from tests.conftest import ROOT, Command
from tests.tiny_models import SENTENCES
from tests.training.test_batches import ROWS
from tests.training.test_trainer import pairs


def test_low_rank_updates_of_a_llama_with_last_token_pooling(tiny_llm: Path, tmp_path: Path) -> None:
    schedule = Schedule(epochs=2, batch_size=16, learning_rate=1e-2)
    entry = train_cosent(
        pairs(), tmp_path / "model", model=str(tiny_llm), backbone=Backbone(pooling="last", lora=4), schedule=schedule
    )
    assert entry.outputs["trained"]["pooling"] == "lasttoken (the model has no pooling layer)"
    before = load_backbone(locate(str(tiny_llm)), Backbone(pooling="last"))
    after = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert [module.pooling_mode for module in after if isinstance(module, Pooling)] == ["lasttoken"]
    old, new = before.state_dict(), after.state_dict()
    assert old.keys() == new.keys()  # merged: no update stands beside a weight, and peft isn't needed
    assert torch.equal(old["0.model.embed_tokens.weight"], new["0.model.embed_tokens.weight"])
    change = new["0.model.layers.0.self_attn.q_proj.weight"] - old["0.model.layers.0.self_attn.q_proj.weight"]
    assert torch.linalg.matrix_rank(change, rtol=1e-4) == 4
    # The last token's vector, by hand; the tokenizer may pad on either side.
    given = after.preprocess([SENTENCES[0], SENTENCES[8]])
    with torch.no_grad():
        tokens = after[0].model(**{k: given[k] for k in ("input_ids", "attention_mask")}).last_hidden_state
        vectors = after(given)["sentence_embedding"]
    for row in range(2):
        last = int(given["attention_mask"][row].nonzero().max())
        assert torch.allclose(vectors[row], tokens[row, last], atol=1e-6)


def test_pooling_and_prompt_are_the_models_own_unless_told(tiny_model: Path, tmp_path: Path) -> None:
    def pooling(backbone: Backbone, model: Path = tiny_model) -> list[str]:
        network = load_backbone(locate(str(model)), backbone)
        return [module.pooling_mode for module in network if isinstance(module, Pooling)]

    assert pooling(Backbone()) == ["mean"]
    assert pooling(Backbone(pooling="cls")) == ["cls"]
    network = SentenceTransformer(str(tiny_model), device="cpu")
    SentenceTransformer(modules=[network[0]], prompts={"ask": "question: "}, device="cpu").save(
        str(tmp_path / "bare"), create_model_card=False
    )
    assert pooling(Backbone(), tmp_path / "bare") == ["mean"]
    entry = train_angle(
        pairs(), tmp_path / "model", model=str(tmp_path / "bare"), backbone=Backbone(pooling="cls", prompt="ask")
    )
    assert entry.outputs["trained"]["prompt"] == "question: "
    trained = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert (trained.prompts["ask"], trained.default_prompt_name) == ("question: ", "ask")
    with pytest.raises(InputError, match=r"bare has no prompt answer; it has: .*ask"):
        load_backbone(locate(str(tmp_path / "bare")), Backbone(prompt="answer"))


def test_a_gradient_cache_gives_the_same_gradients(tiny_model: Path) -> None:
    model = SentenceTransformer(str(tiny_model), device="cpu").double().eval()
    batch = Collator(model.preprocess)(ROWS)
    columns = columns_of_batch(batch, ["sentence1", "sentence2"])
    gradients = []
    for cached in (False, True):
        model.zero_grad()
        distinct = DistinctEncoder(model, group=2, together=True, cached=cached)
        distinct.begin(columns_of_batch(batch, ["distinct"])[0])
        JointAngleLoss(distinct)(columns, batch["label"]).backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert gradients[0]
    for plain, again in zip(*gradients, strict=True):
        assert torch.allclose(plain, again, rtol=1e-6, atol=1e-12)


def test_a_loss_that_is_no_number_stops_and_names_the_rows(tiny_model: Path, tmp_path: Path) -> None:
    network = SentenceTransformer(str(tiny_model), device="cpu")
    with torch.no_grad():
        network[0].model.embeddings.LayerNorm.weight.fill_(float("nan"))
    network.save(str(tmp_path / "broken"), create_model_card=False)
    rows = pairs()
    with pytest.raises(ServiceError, match=r"A vector isn't finite in step 1, on the rows \d+-\d+, .* and 24 more"):
        train_cosent(rows, tmp_path / "model", model=str(tmp_path / "broken"))
    assert not (tmp_path / "model").exists()


def test_out_of_memory_suggests_the_micro_batch() -> None:
    assert "--micro-batch" in str(_explained(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")))


def test_fp16_needs_a_gpu() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="--precision fp16 needs a GPU"):
            Schedule(precision="fp16")


def test_the_command_takes_backbone_and_micro_batch(command: Command, tiny_model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text1,text2,score\n" + "".join(f"{SENTENCES[i][:-1]},b{i},{i / 5}\n" for i in (0, 1, 2, 3)))
    given = ("train", "angle", "--data", data, "--model", tiny_model, "--out", tmp_path / "model")
    done = command(*given, "--pooling", "cls", "--lora", 2, "--micro-batch", 3, "--precision", "bf16", "--json")
    settings = json.loads(done.stdout)["stages"][0]["settings"]
    assert (settings["pooling"], settings["lora"], settings["micro_batch"]) == ("cls", 2, 3)
    assert settings["precision"] == "bf16"
    refused = command(*given[:-1], tmp_path / "other", "--prompt", "none-such")
    assert (refused.exit_code, "has no prompt none-such" in refused.stderr) == (2, True)


TWO = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from stscurate.training import Part, cosent_objective
from tests.training.test_parts import few
from tests.training.test_trainer import LOOKING, pairs, train_angle, validation
also = [Part(few(), cosent_objective())]
train_angle(pairs(), Path(sys.argv[3]), model=sys.argv[2], schedule=LOOKING, validation=validation(), also=also)
"""


def test_two_processes_train_one_model_and_have_one_source_at_a_time(tiny_model: Path, tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(TWO)
    out = tmp_path / "model"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "true", "WORLD_SIZE": "2"}
    environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    call = [sys.executable, str(script), str(ROOT), str(tiny_model), str(out)]
    processes = [  # as torchrun starts them
        subprocess.Popen(call, env={**environment, "RANK": rank, "LOCAL_RANK": rank}, stderr=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    curve = json.loads((out / "training_curve.json").read_text())
    # nine batches of a pass, and one again, shared by two, and the one of the other source for both; twice
    assert curve["points"][-1]["step"] == 2 * (5 + 1)
    assert {"pairs: angle", "few.csv: loss"} <= {name for point in curve["points"] for name in point}
    assert isinstance(SentenceTransformer(str(out), device="cpu")[0], nn.Module)

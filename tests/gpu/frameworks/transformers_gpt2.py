"""transformers: GPT-2 of random weights generates text, and is trained by Trainer."""
import tempfile

import torch
import transformers
from report import report

torch.manual_seed(1)
finish = torch.cuda.synchronize
config = transformers.GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=1000)
model = transformers.GPT2LMHeadModel(config).cuda().eval()
prompt = torch.randint(1000, (1, 16), device="cuda")
tokens = None


def generate():
    global tokens
    tokens = model.generate(prompt, max_new_tokens=16, do_sample=False, pad_token_id=0)


report("gpt2_generate", generate, finish, samples=5, warm_up=2, result=lambda: tokens.sum())


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        text = (torch.arange(64) * (index + 1)) % 1000
        return {"input_ids": text, "labels": text}


def train():
    global loss
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=10, per_device_train_batch_size=8, report_to=[], save_strategy="no",
            logging_strategy="no", disable_tqdm=True, seed=1)
        trainer = transformers.Trainer(transformers.GPT2LMHeadModel(config), arguments,
                                       train_dataset=Texts())
        loss = trainer.train().training_loss


loss = 0.0
report("gpt2_train", train, finish, samples=1, warm_up=1, result=lambda: loss)

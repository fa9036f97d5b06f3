"""Trains the tagger of jets with PyTorch, and writes `tagger.onnx`; about a minute on two cores.

python train.py    # in this folder, with PyTorch and onnx
"""

import numpy as np
import torch
from jets import KINDS, generate

N_JETS = 60_000
N_EPOCHS = 12
BATCH = 256


class Tagger(torch.nn.Module):
    """A network of every particle, the sum over particles, and a network of the sum."""

    def __init__(self, width=32):
        super().__init__()
        self.particle = torch.nn.Sequential(
            torch.nn.Linear(5, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU()
        )
        self.jet = torch.nn.Sequential(
            torch.nn.Linear(width + 1, width), torch.nn.ReLU(), torch.nn.Linear(width, len(KINDS))
        )

    def forward(self, particles, mask):
        """Returns logits [jets, 3] of particles [jets, P, 3] with a mask [jets, P]."""
        pt, eta, phi = particles[..., 0], particles[..., 1], particles[..., 2]
        mask = mask.to(particles.dtype)
        total = (pt * mask).sum(1, keepdim=True)
        radius = torch.sqrt(eta * eta + phi * phi + 1e-8)
        # Padding has no momentum, and its logarithm stays finite.
        features = torch.stack([torch.log(pt + 1e-3), torch.log(pt / total + 1e-5), 5 * eta, 5 * phi, 5 * radius], -1)
        summed = (self.particle(features) * mask[..., None]).sum(1) / 20
        return self.jet(torch.cat([summed, torch.log(total) - 6], 1))


def padded(jets):
    """Returns jets [jets, P, 3] with zeros behind shorter ones, and their mask."""
    counts = np.diff(jets.offsets)
    mask = np.arange(counts.max()) < counts[:, None]
    particles = np.zeros((*mask.shape, 3), np.float32)
    particles[mask] = jets.particles
    return torch.from_numpy(particles), torch.from_numpy(mask)


def train(model, particles, mask, kinds):
    """Trains with batches of all kinds and a learning rate that falls to zero."""
    steps = N_EPOCHS * (len(kinds) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    for epoch in range(N_EPOCHS):
        order, losses = torch.randperm(len(kinds)), []
        for batch in order[: len(kinds) // BATCH * BATCH].view(-1, BATCH):
            loss = torch.nn.functional.cross_entropy(model(particles[batch], mask[batch]), kinds[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")


def main():
    torch.manual_seed(1)
    jets = [generate(kind, N_JETS // len(KINDS), seed=100 + index) for index, kind in enumerate(KINDS)]
    size = max(int(np.diff(one.offsets).max()) for one in jets)
    parts = [padded(one) for one in jets]
    particles = torch.cat([torch.nn.functional.pad(part, (0, 0, 0, size - part.shape[1])) for part, _ in parts])
    mask = torch.cat([torch.nn.functional.pad(mask, (0, size - mask.shape[1])) for _, mask in parts])
    kinds = torch.arange(len(KINDS)).repeat_interleave(N_JETS // len(KINDS))
    model = Tagger()
    train(model, particles, mask, kinds)
    model.eval()
    axes = {"particles": {0: "batch", 1: "particles"}, "mask": {0: "batch", 1: "particles"}, "logits": {0: "batch"}}
    torch.onnx.export(
        model, (particles[:2], mask[:2]), "tagger.onnx", dynamo=False, opset_version=17,
        input_names=["particles", "mask"], output_names=["logits"], dynamic_axes=axes,
    )


if __name__ == "__main__":
    main()

"""Which kind of work each operation that torch's profiler saw belongs to."""

from collections.abc import Iterator, Sequence

from torch.autograd.profiler_util import FunctionEvent

PYTHON = "Python and dispatch"
OTHER = "other element-wise"
# In this order; "attention" is what stands between its linear maps.
KINDS = [
    "matrix products",
    "attention",
    "softmax and loss",
    "norm",
    "dropout",
    "optimiser and gradient",
    "copies and casts",
    OTHER,
    PYTHON,
]
# What an operator is by its own name, wherever it stands.
_BY_NAME = {
    "matrix products": "mm addmm mkldnn_linear mkldnn_linear_backward",
    "attention": "bmm baddbmm "
    "_scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "softmax and loss": "_log_softmax _log_softmax_backward_data logsumexp nll_loss_forward "
    "nll_loss_backward",
    "norm": "native_layer_norm native_layer_norm_backward",
    "dropout": "random_ bernoulli_ native_dropout native_dropout_backward",
    "optimiser and gradient": "_fused_adamw_ _fused_adam_ _foreach_lerp_ linalg_vector_norm",
    # They move no number: a view, or one operator that calls another.
    PYTHON: "view _unsafe_view reshape _reshape_alias transpose t permute expand expand_as slice "
    "select narrow split chunk unsqueeze squeeze detach detach_ alias as_strided flatten unflatten "
    "linear matmul layer_norm softmax log_softmax nll_loss embedding dropout empty empty_like "
    "empty_strided resize_ resolve_conj resolve_neg result_type item _local_scalar_dense",
}
# What else it is by a module, an autograd function or a step that it is a part of.
_BY_PLACE = {
    "dropout": ("dropout",),
    "norm": ("norm",),
    "softmax and loss": ("loss", "entropy", "logsoftmax"),
    "optimiser and gradient": ("optimizer.", "accumulategrad"),
    OTHER: ("linear",),
    "attention": ("attention", "multihead", "bmm"),
}
_MOVES = (
    "copy_ to _to_copy clone contiguous cat stack fill_ zero_ zeros zeros_like index index_select"
)
_KIND_OF_NAME = {name: kind for kind, names in _BY_NAME.items() for name in names.split()}


def kind_of(
    event: FunctionEvent, places: Sequence[FunctionEvent], num_pieces: int, num_weights: int
) -> str:
    """Return the kind of an event that stands in `places`, the nearest first.

    Logits are told by their last dimension, the gradient by its one dimension of the model's size.
    """
    name = event.name.removeprefix("aten::")
    if name in _KIND_OF_NAME:
        return _KIND_OF_NAME[name]
    if not event.name.startswith("aten::") and not _is_own_operator(event):
        return PYTHON
    shapes = [shape for shape in event.input_shapes if shape]
    if any(shape[-1] == num_pieces and len(shape) > 1 for shape in shapes):
        return "softmax and loss"
    if any(len(shape) == 1 and shape[0] >= num_weights for shape in shapes):
        return "optimiser and gradient"
    place = _kind_of_place(places)
    if name in _MOVES.split() and place in ("", OTHER, "attention"):
        return "copies and casts"
    return place or OTHER


def _kind_of_place(places: Sequence[FunctionEvent]) -> str:
    for place in places:
        for kind, words in _BY_PLACE.items():
            if any(word in place.name.lower() for word in words):
                return kind
    return ""


def _is_own_operator(event: FunctionEvent) -> bool:
    """Return whether this is an operator of another library than torch's own."""
    return "::" in event.name and not event.name.startswith("autograd::")


class Places:
    """Tells where an event stands; for one of the backward pass, where its forward one stood."""

    def __init__(self, events: Sequence[FunctionEvent]) -> None:
        # The last operator before a node of the graph is the one that the node is made for.
        self._forward = {
            event.sequence_nr: event
            for event in sorted(events, key=lambda event: event.time_range.start)
            if event.sequence_nr >= 0 and not is_backward(event)
        }

    def of(self, event: FunctionEvent) -> list[FunctionEvent]:
        places = list(_parents(event))
        node = next((place for place in [event, *places] if _is_node(place)), None)
        if node is None or node.sequence_nr not in self._forward:
            return places
        return [*places, *_parents(self._forward[node.sequence_nr])]


def is_backward(event: FunctionEvent) -> bool:
    return any(_is_node(place) for place in [event, *_parents(event)])


def _is_node(event: FunctionEvent) -> bool:
    return event.name.startswith("autograd::engine::evaluate_function")


def _parents(event: FunctionEvent) -> Iterator[FunctionEvent]:
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event

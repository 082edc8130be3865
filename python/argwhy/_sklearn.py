"""What scikit-learn asks of an estimator.

Nothing here runs unless scikit-learn calls it, so it may import it.
"""

from __future__ import annotations

from typing import Any

from ._extras import extra


def regressor_tags() -> Any:
    """Decisions are numbers, one or several a sample, needed to fit; input is dense and finite."""
    utils = extra("sklearn.utils", "scikit-learn's tags", "sklearn")
    return utils.Tags(
        estimator_type="regressor",
        target_tags=utils.TargetTags(required=True, one_d_labels=False, two_d_labels=False, multi_output=True),
        regressor_tags=utils.RegressorTags(),
        input_tags=utils.InputTags(two_d_array=True, sparse=False, allow_nan=False),
    )


METADATA = {
    "fit": ("sample_weight", "constraints", "rows"),
    "predict": ("constraints",),
    "score": ("sample_weight", "constraints"),
}
"""What the methods take beside X and y."""


def metadata_routing(estimator: Any) -> Any:
    """Which of it the estimator asks meta-estimators for; nothing until it is told to."""
    routing = extra("sklearn.utils.metadata_routing", "metadata routing", "sklearn")
    stored = estimator.__dict__.get("_metadata_request")
    if stored is not None:
        return routing.get_routing_for_object(stored)
    request = routing.MetadataRequest(owner=estimator)
    for method, arguments in METADATA.items():
        for argument in arguments:
            getattr(request, method).add_request(param=argument, alias=None)
    return request


def set_request(estimator: Any, method: str, asked: dict[str, Any]) -> None:
    """Changes what the estimator asks for: True, False, None, or another name to ask by."""
    for argument in asked:
        if argument not in METADATA[method]:
            raise TypeError(f"{method} takes no {argument!r}; it takes {', '.join(METADATA[method])}")
    request = metadata_routing(estimator)
    for argument, alias in asked.items():
        getattr(request, method).add_request(param=argument, alias=alias)
    # The name under which scikit-learn's clone looks for it.
    estimator._metadata_request = request

"""What scikit-learn asks of an estimator. Nothing here runs unless scikit-learn calls it, so it may import it."""

from __future__ import annotations

from typing import Any

from ._extras import extra


def regressor_tags() -> Any:
    """Decisions are numbers, one or several a sample, and needed to fit; input is dense and finite."""
    utils = extra("sklearn.utils", "scikit-learn's tags", "sklearn")
    return utils.Tags(
        estimator_type="regressor",
        target_tags=utils.TargetTags(required=True, one_d_labels=False, two_d_labels=False, multi_output=True),
        regressor_tags=utils.RegressorTags(),
        input_tags=utils.InputTags(two_d_array=True, sparse=False, allow_nan=False),
    )


def metadata_request(estimator: Any, methods: dict[str, tuple[str, ...]]) -> Any:
    """Which arguments beside X and y the methods take, for scikit-learn's metadata routing."""
    routing = extra("sklearn.utils.metadata_routing", "metadata routing", "sklearn")
    requested: dict[str, dict[str, Any]] = estimator.__dict__.get("_requested", {})
    request = routing.MetadataRequest(owner=estimator)
    for method, arguments in methods.items():
        for argument in arguments:
            alias = requested.get(method, {}).get(argument)
            getattr(request, method).add_request(param=argument, alias=alias)
    return request

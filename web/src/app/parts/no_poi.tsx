// Says why there is no result for a model without a parameter of interest.

export function NoPoi({ what }: { what: string }) {
  return <p class="absent">The measurement has no parameter of interest, so there is no {what.replace(/^an? /, "")}. Choose one in the list of parameters.</p>;
}

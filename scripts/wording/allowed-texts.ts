/** Texts of upstream that we repeat word for word, as in messages of the Kubernetes API. White space may differ. */
export const ALLOWED_TEXTS: readonly string[] = [
  // plugin/pkg/admission/priority/admission.go
  'from the given PriorityClass name',
  'must populate information for the given metric source',
  'must populate the given metric source only',
  'may only hold up to 2 values',
];

/** Texts of upstream that we repeat word for word, as in messages of the Kubernetes API. White space may differ. */
export const ALLOWED_TEXTS: readonly string[] = [
  // plugin/pkg/admission/priority/admission.go
  'from the given PriorityClass name',
];

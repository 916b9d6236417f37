/** Texts of `kubectl explain` by type, `core/v1.Taint`, and field; that of the type itself has the name ''. */
export type Descriptions = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Texts of fields that many types have. */
export const OF_MANY: Readonly<Record<string, string>> = {
  metadata: 'Identity, version, labels and annotations of the object.',
  readOnly: 'Whether the volume is mounted read-only.',
  fsType: 'File system of the volume, such as ext4.',
  optional: 'Whether it may be missing.',
  observedGeneration: 'Generation that the status was computed from.',
  minReadySeconds: 'Seconds a new pod must be ready to count as available.',
  message: 'Explanation for people.',
  reason: 'One word for the cause, for programs.',
  lastTransitionTime: 'When the status last changed.',
};

/** Texts of the fields of conditions. */
export const OF_CONDITIONS: Readonly<Record<string, string>> = {
  type: 'Aspect in question.',
  status: 'True, False or Unknown.',
};

import type { Descriptions } from './descriptions.ts';

export const config: Descriptions = {
  'core/v1.ConfigMap': {
    '': 'ConfigMap holds configuration data for pods to consume.',
    immutable: 'Whether the data can no longer change.',
    data: 'Values as text, by key.',
    binaryData: 'Values as bytes in base64, by key.',
  },
  'core/v1.Secret': {
    '': 'Secret holds secret data of a certain type. Only its metadata is printed in tables.',
    immutable: 'Whether the data can no longer change.',
    data: 'Values as bytes in base64, by key.',
    stringData: 'Values as text, by key. They are merged into data at a write, and never returned.',
    type: 'What the data is used for, such as kubernetes.io/tls; Opaque if not set.',
  },
  'core/v1.ServiceAccount': {
    '': 'ServiceAccount is an identity of processes in pods.',
    secrets: 'Secrets that its pods may use. Not enforced here.',
    imagePullSecrets: 'Secrets to pull images with, for pods that name none.',
    automountServiceAccountToken: 'Whether pods mount a token of the account.',
  },
};

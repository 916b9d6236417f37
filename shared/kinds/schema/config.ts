import { metadata, objectReference } from '../../kubernetes/schema/meta.ts';
import {
  bool,
  bytesMap,
  keyedList,
  kindStruct,
  list,
  pointer,
  type StructSchema,
  text,
  textMap,
} from '../../kubernetes/schema/schema.ts';
import { localObjectReference } from './container.ts';

const CORE = 'io.k8s.api.core.v1';

export const configMap: StructSchema = kindStruct(
  `${CORE}.ConfigMap`,
  { group: '', version: 'v1', kind: 'ConfigMap' },
  'ConfigMap holds configuration data for pods to consume.',
  {
    metadata,
    immutable: pointer(bool('Whether the data can no longer change.')),
    data: textMap('Values as text, by key.'),
    binaryData: bytesMap('Values as bytes in base64, by key.'),
  },
);

export const secret: StructSchema = kindStruct(
  `${CORE}.Secret`,
  { group: '', version: 'v1', kind: 'Secret' },
  'Secret holds secret data of a certain type. Only its metadata is printed in tables.',
  {
    metadata,
    immutable: pointer(bool('Whether the data can no longer change.')),
    data: bytesMap('Values as bytes in base64, by key.'),
    stringData: textMap('Values as text, by key. They are merged into data at a write, and never returned.'),
    type: text('What the data is used for, such as kubernetes.io/tls; Opaque if not set.'),
  },
);

export const serviceAccount: StructSchema = kindStruct(
  `${CORE}.ServiceAccount`,
  { group: '', version: 'v1', kind: 'ServiceAccount' },
  'ServiceAccount is an identity of processes in pods.',
  {
    metadata,
    secrets: keyedList(objectReference, 'Secrets that its pods may use. Not enforced here.', { mergeKey: 'name' }),
    imagePullSecrets: list(localObjectReference, 'Secrets to pull images with, for pods that name none.'),
    automountServiceAccountToken: pointer(bool('Whether pods mount a token of the account.')),
  },
);

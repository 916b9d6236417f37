/** The ConfigMaps and Secrets that a pod refers to. */
import type { EnvFromSource, KubeObject, KubePod, Volume } from '../../shared/kinds/types.ts';

/** A ConfigMap or a Secret. Binary data, and all data of a Secret, is in base64. */
export interface ConfigObject extends KubeObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
  immutable?: boolean;
}

export type ObjectKind = 'configmap' | 'secret';

export type ReadObject =
  | { readonly kind: 'found'; readonly object: ConfigObject }
  | { readonly kind: 'missing' }
  /** Why it could not be read. */
  | { readonly kind: 'failed'; readonly message: string };

/** The newest read of an object of the pod's namespace. */
export type ObjectSource = (kind: ObjectKind, name: string) => ReadObject;

export interface ObjectReference {
  readonly kind: ObjectKind;
  readonly name: string;
}

/** The text with which a kubelet reports an object that does not exist. */
export const notFoundText = (kind: ObjectKind, name: string): string => `${kind} ${JSON.stringify(name)} not found`;

/** Each object once. */
export function objectsOf({ spec }: KubePod): readonly ObjectReference[] {
  const { volumes = [], initContainers = [], containers = [] } = spec ?? {};
  const found: ObjectReference[] = volumes.flatMap(volumeObjects);
  for (const { env = [], envFrom = [] } of [...initContainers, ...containers]) {
    found.push(...envFrom.flatMap(envFromObjects));
    for (const { valueFrom } of env) {
      found.push(...named('configmap', valueFrom?.configMapKeyRef?.name));
      found.push(...named('secret', valueFrom?.secretKeyRef?.name));
    }
  }
  return [...new Map(found.map((each) => [`${each.kind}/${each.name}`, each])).values()];
}

const envFromObjects = ({ configMapRef, secretRef }: EnvFromSource): ObjectReference[] => [
  ...named('configmap', configMapRef?.name),
  ...named('secret', secretRef?.name),
];

const volumeObjects = ({ configMap, secret, projected }: Volume): ObjectReference[] => [
  ...named('configmap', configMap?.name),
  ...named('secret', secret?.secretName),
  ...(projected?.sources ?? []).flatMap((source) => [
    ...named('configmap', source.configMap?.name),
    ...named('secret', source.secret?.name),
  ]),
];

const named = (kind: ObjectKind, name = ''): ObjectReference[] => (name === '' ? [] : [{ kind, name }]);

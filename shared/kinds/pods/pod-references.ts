/**
 * The objects that a pod refers to. A node may read exactly these Secrets, ConfigMaps and claims, and request tokens of
 * its account, if the pod is bound to it. Source: plugin/pkg/auth/authorizer/node/graph.go (AddPod),
 * pkg/api/v1/pod/util.go (VisitPodSecretNames, VisitPodConfigmapNames).
 */
import { MIRROR_POD_ANNOTATION } from '../../access/node-restriction.ts';

export type ReferencedResource = 'configmaps' | 'persistentvolumeclaims' | 'secrets' | 'serviceaccounts';

interface Referring {
  readonly metadata: {
    readonly name?: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: {
    readonly containers?: unknown;
    readonly initContainers?: unknown;
    readonly ephemeralContainers?: unknown;
    readonly imagePullSecrets?: unknown;
    readonly serviceAccountName?: unknown;
    readonly volumes?: unknown;
  };
}

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const recordOf = (value: unknown): Json => (isRecord(value) ? value : {});
const recordsOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isRecord) : []);

/** How a reference is written in the set: `secrets/NAMESPACE/NAME`. */
export const referenceKey = (resource: ReferencedResource, namespace: string, name: string): string =>
  `${resource}/${namespace}/${name}`;

/** The references of a pod. A mirror pod has none: its node made it up. */
export function referencesOf({ metadata, spec = {} }: Referring): readonly string[] {
  if (metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined) return [];
  const { namespace = '', name: podName = '' } = metadata;
  const found: string[] = [];
  const add = (resource: ReferencedResource, name: unknown): void => {
    if (typeof name === 'string' && name !== '') found.push(referenceKey(resource, namespace, name));
  };
  add('serviceaccounts', spec.serviceAccountName);
  for (const secret of recordsOf(spec.imagePullSecrets)) add('secrets', secret['name']);
  for (const container of [spec.containers, spec.initContainers, spec.ephemeralContainers].flatMap(recordsOf)) {
    for (const { secretRef, configMapRef } of recordsOf(container['envFrom'])) {
      add('secrets', recordOf(secretRef)['name']);
      add('configmaps', recordOf(configMapRef)['name']);
    }
    for (const { valueFrom } of recordsOf(container['env'])) {
      const { secretKeyRef, configMapKeyRef } = recordOf(valueFrom);
      add('secrets', recordOf(secretKeyRef)['name']);
      add('configmaps', recordOf(configMapKeyRef)['name']);
    }
  }
  for (const volume of recordsOf(spec.volumes)) addVolume(volume, podName, add);
  return found;
}

function addVolume(volume: Json, podName: string, add: (resource: ReferencedResource, name: unknown) => void): void {
  add('secrets', recordOf(volume['secret'])['secretName']);
  add('configmaps', recordOf(volume['configMap'])['name']);
  add('persistentvolumeclaims', recordOf(volume['persistentVolumeClaim'])['claimName']);
  // The claim of an ephemeral volume is named after the pod and the volume.
  if (isRecord(volume['ephemeral'])) add('persistentvolumeclaims', `${podName}-${volume['name']}`);
  for (const { secret, configMap } of recordsOf(recordOf(volume['projected'])['sources'])) {
    add('secrets', recordOf(secret)['name']);
    add('configmaps', recordOf(configMap)['name']);
  }
  // The other sources name the Secret of their driver.
  for (const source of Object.values(volume).filter(isRecord)) {
    add('secrets', recordOf(source['secretRef'])['name']);
    add('secrets', recordOf(source['nodePublishSecretRef'])['name']);
  }
  add('secrets', recordOf(volume['azureFile'])['secretName']);
}

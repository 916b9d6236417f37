/**
 * Objects that every namespace has. Upstream creates them by controllers: pkg/controller/serviceaccount and
 * pkg/controller/certificates/rootcacertpublisher.
 */
import type { KubeConfigMap } from '../../kube/application-types.ts';
import { DEFAULT_ACCOUNT, ROOT_CA } from '../../kube/namespace-contents.ts';
import { formatTime } from '../../kube/time.ts';
import type { KubeObject, ObjectRef } from '../../kube/types.ts';
import { configmaps } from './configmaps.ts';
import { serviceaccounts } from './serviceaccounts.ts';

/**
 * Certificates that clients in pods trust. It is empty, because the endpoint of the API has a certificate of a public
 * authority. Client libraries then use the authorities of their system.
 */
const ROOT_CA_DATA = { 'ca.crt': '' };
/** Upstream pkg/controller/certificates/rootcacertpublisher/publisher.go. */
const ROOT_CA_NOTE =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

export interface NewObjectContext {
  readonly nowMs: number;
  readonly uuid: () => string;
}

export const contentRefs = (namespace: string): readonly ObjectRef[] => [
  { resource: serviceaccounts.resource, namespace, name: DEFAULT_ACCOUNT },
  { resource: configmaps.resource, namespace, name: ROOT_CA },
];

/** The object of one of `contentRefs`, as it is created. */
export function contentOf({ resource, namespace, name }: ObjectRef, { nowMs, uuid }: NewObjectContext): KubeObject {
  const metadata = { name, namespace, uid: uuid(), creationTimestamp: formatTime(nowMs) };
  if (resource === serviceaccounts.resource) return serviceaccounts.prepareForCreate({ metadata }, { nowMs });
  const annotated = { ...metadata, annotations: { 'kubernetes.io/description': ROOT_CA_NOTE } };
  const configMap: KubeConfigMap = { metadata: annotated, data: ROOT_CA_DATA };
  return configmaps.prepareForCreate(configMap, { nowMs });
}

/** A stored object with the content that it must have. Returns the same object if it has it. */
export function repairedContent(object: KubeConfigMap): KubeObject {
  if (object.kind !== configmaps.kind || object.data?.['ca.crt'] === ROOT_CA_DATA['ca.crt']) return object;
  return { ...object, data: ROOT_CA_DATA };
}

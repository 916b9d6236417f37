/**
 * Objects that every namespace has. Upstream creates them by controllers: pkg/controller/serviceaccount and
 * pkg/controller/certificates/rootcacertpublisher.
 */

import { formatTime } from '../../kubernetes/time.ts';
import { prepareConfigMap } from '../configmaps/defaults.ts';
import { CONFIG_MAPS } from '../configmaps/resource.ts';
import { prepareServiceAccount } from '../serviceaccounts/defaults.ts';
import { SERVICE_ACCOUNTS } from '../serviceaccounts/resource.ts';
import { DEFAULT_ACCOUNT, ROOT_CA } from '../stored-resource.ts';
import type { KubeConfigMap, KubeObject, ObjectRef } from '../types.ts';

/** Upstream pkg/controller/certificates/rootcacertpublisher/publisher.go. */
const ROOT_CA_NOTE =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

export interface NewObjectContext {
  readonly nowMs: number;
  readonly uuid: () => string;
  readonly apiAuthorities: ApiAuthorities;
  readonly apiAddress?: ApiAddress;
}

/** Certificates in PEM that clients in pods trust. Empty: they use the authorities of their system. */
export type ApiAuthorities = () => string;

/** Where the API is reached inside of the network of its machines. Undefined: by a name only. */
export type ApiAddress = () => { readonly ip: string; readonly port: number } | undefined;

export const noAuthorities: ApiAuthorities = () => '';

export const contentRefs = (namespace: string): readonly ObjectRef[] => [
  { resource: SERVICE_ACCOUNTS.resource, namespace, name: DEFAULT_ACCOUNT },
  { resource: CONFIG_MAPS.resource, namespace, name: ROOT_CA },
];

/** The object of one of `contentRefs`, as it is created. */
export function contentOf(
  { resource, namespace, name }: ObjectRef,
  { nowMs, uuid, apiAuthorities }: NewObjectContext,
): KubeObject {
  const metadata = { name, namespace, uid: uuid(), creationTimestamp: formatTime(nowMs) };
  if (resource === SERVICE_ACCOUNTS.resource) return prepareServiceAccount.prepareForCreate({ metadata }, { nowMs });
  const annotated = { ...metadata, annotations: { 'kubernetes.io/description': ROOT_CA_NOTE } };
  const configMap: KubeConfigMap = { metadata: annotated, data: { 'ca.crt': apiAuthorities() } };
  return prepareConfigMap.prepareForCreate(configMap, { nowMs });
}

/** A stored object with the content that it must have. Returns the same object if it has it. */
export function repairedContent(object: KubeConfigMap, apiAuthorities: ApiAuthorities): KubeObject {
  if (object.kind !== CONFIG_MAPS.kind) return object;
  const certificates = apiAuthorities();
  return object.data?.['ca.crt'] === certificates ? object : { ...object, data: { 'ca.crt': certificates } };
}

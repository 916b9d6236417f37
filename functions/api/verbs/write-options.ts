/** Parts that all writes of one object share: options, number of attempts, and the checks of every kind. */

import type { UserInfo } from '../../../shared/access/user-info.ts';
import type { WriteAdmission } from '../../../shared/admission/admit-by-policies.ts';
import { type Backoff, backoffMs } from '../../../shared/backoff.ts';
import { defined } from '../../../shared/defined.ts';
import type { PrepareContext, ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** Attempts at a write that conflicts with other writers. With the pauses between them about five seconds. */
export const WRITE_ATTEMPTS_MAX = 24;
/** The longest pause before another attempt. */
const PAUSES: Backoff = { firstMs: 4, limitMs: 300, jitter: [0, 1] };

export interface WriteOptions extends Partial<WriteAdmission> {
  readonly nowMs: number;
  /** Who writes. Absent: the system itself. */
  readonly user?: UserInfo;
  /** True: respond as for a write, but store nothing. */
  readonly dryRun: boolean;
  /** Returns `next` with managedFields that name the writer. `live`: the stored object. Absent: no managedFields. */
  readonly track?: (next: KubeObject, live: KubeObject | undefined) => KubeObject;
  /**
   * Checks whether the user may change `stored` at all. Called before a patch is applied. Otherwise the `test`
   * operations of a patch would reveal fields of an object that the user may not read.
   */
  readonly admitStored?: (stored: KubeObject) => Promise<void>;
  /** Returns an admitted object with what the system states of it. Called before each attempt, dry runs included. */
  readonly complete?: (next: KubeObject) => Promise<KubeObject>;
}

export interface WrittenObject {
  readonly object: KubeObject;
  readonly created: boolean;
}

/** Waits before another attempt. The time is random: the same writers must not conflict again. */
export const pauseBefore = ({ pause, random }: ApiDependencies, attempt: number): Promise<unknown> =>
  pause(backoffMs(PAUSES, attempt - 1, random.fraction()));

/** The object's resourceVersion, '' when it has none. "0" is none too, as upstream (storage.APIObjectVersioner). */
export function resourceVersionOf({ metadata }: KubeObject): string {
  const { resourceVersion = '' } = metadata;
  return resourceVersion === '0' ? '' : resourceVersion;
}

export function withManagedFields(
  object: KubeObject,
  managedFields: KubeObject['metadata']['managedFields'] = [],
): KubeObject {
  const { managedFields: _replaced, ...metadata } = object.metadata;
  return { ...object, metadata: managedFields.length === 0 ? metadata : { ...metadata, managedFields } };
}

export const prepareContext = (dependencies: ApiDependencies, options: WriteOptions): PrepareContext => ({
  nowMs: options.nowMs,
  ...defined({ user: options.user }),
  defaultTolerationSeconds: dependencies.podEvictionTimeoutSeconds,
});

/** @throws StatusError 422 when there are causes */
export function refuseInvalid(descriptor: ResourceDescriptor, name: string, causes: readonly status.Cause[]): void {
  if (causes.length > 0) throw status.invalid(descriptor, name, causes);
}

/**
 * The object with kind and apiVersion of the URL.
 *
 * @throws StatusError 400 when the body names another kind or apiVersion
 */
export function withTypeOf(descriptor: ResourceDescriptor, object: KubeObject): KubeObject {
  const apiVersion = descriptor.group === '' ? descriptor.version : `${descriptor.group}/${descriptor.version}`;
  if (object.kind !== undefined && object.kind !== '' && object.kind !== descriptor.kind) {
    throw status.badRequest(
      `${object.kind} in version "${object.apiVersion ?? ''}" cannot be handled as a ${descriptor.kind}: no kind "${object.kind}" is registered for version "${apiVersion}"`,
    );
  }
  if (object.apiVersion !== undefined && object.apiVersion !== '' && object.apiVersion !== apiVersion) {
    throw status.badRequest(
      `the API version in the data (${object.apiVersion}) does not match the expected API version (${apiVersion})`,
    );
  }
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = object;
  return { kind: descriptor.kind, apiVersion, metadata: metadata ?? {}, ...rest };
}

/**
 * The object with the namespace of the URL, or without one if its kind is cluster-scoped, as upstream.
 *
 * @throws StatusError 400 when the body names another namespace
 */
export function withNamespaceOf(
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  object: KubeObject,
): KubeObject {
  const metadata = { ...object.metadata };
  if (descriptor.namespaced) {
    const named = metadata.namespace ?? '';
    if (named !== '' && named !== target.namespace) throw status.namespaceMismatch();
    metadata.namespace = target.namespace;
  } else {
    delete metadata.namespace;
  }
  return { ...object, metadata };
}

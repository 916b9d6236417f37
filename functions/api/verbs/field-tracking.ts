/** managedFields of writes other than apply: the writer owns the fields that it changes. */

import { NODES_GROUP } from '../../../shared/access/authorize.ts';
import type { Call } from '../../../shared/api/call.ts';
import type { ResourceStorage } from '../../../shared/api/resource-storage.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { storedAs } from '../../../shared/kinds/registry.ts';
import { schemaFor } from '../../../shared/kinds/schemas.ts';
import { invalidValue } from '../../../shared/kubernetes/causes.ts';
import { apiVersionOf } from '../../../shared/kubernetes/normal-form.ts';
import {
  fieldManagerFault,
  managerFromUserAgent,
  trackUpdate,
  type Writer,
} from '../../../shared/kubernetes/patch/managed-fields.ts';
import type { StructSchema } from '../../../shared/kubernetes/schema.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import type { WriteOptions } from './write-options.ts';

export function writerOf({ request, descriptor, target, nowMs }: Call, optionsKind: string): Writer {
  const named = request.query.get('fieldManager') ?? '';
  const fault = fieldManagerFault(named);
  if (fault !== undefined) {
    throw status.invalid({ group: 'meta.k8s.io', kind: optionsKind }, '', [invalidValue('fieldManager', named, fault)]);
  }
  return {
    manager: named === '' ? managerFromUserAgent(request.headers['user-agent'] ?? '') : named,
    apiVersion: apiVersionOf(descriptor),
    subresource: target.subresource,
    time: formatTime(nowMs),
  };
}

/** Fields that a write to this (sub)resource never changes. The body is ignored there. */
export function untouchedBy(descriptor: ResourceDescriptor, subresource: string): readonly (readonly string[])[] {
  if (subresource === 'status') {
    const { custom } = descriptor;
    return custom === undefined ? [['spec']] : [['metadata'], ...contentOf(custom.schema).map((name) => [name])];
  }
  return descriptor.subresources.some((each) => each.name === 'status') ? [['status']] : [];
}

/** Members that a write of the status leaves as they are. */
const contentOf = ({ fields }: StructSchema): string[] =>
  Object.keys(fields).filter((name) => !['apiVersion', 'kind', 'metadata', 'status'].includes(name));

/**
 * The tracking of managedFields for one write. None where the storage keeps no managedFields. None for the status that
 * nodes post: no other client applies it, and tracking would add half of the cost of a status post.
 */
export function trackingOf(call: Call, storage: ResourceStorage, optionsKind: string): Pick<WriteOptions, 'track'> {
  const { target, user } = call;
  const writer = writerOf(call, optionsKind);
  if (storage.keepsManagedFields?.(target.namespace) === false) return {};
  if (target.subresource === 'status' && user.groups.includes(NODES_GROUP)) return {};
  const stored = storedAs(call.descriptor);
  const schema = schemaFor(stored);
  const ignored = untouchedBy(stored, target.subresource);
  return {
    track(next, live) {
      const managedFields = trackUpdate({
        schema,
        live,
        next,
        writer: { ...writer, apiVersion: apiVersionOf(stored) },
        ignored,
      });
      const { managedFields: _replaced, ...metadata } = next.metadata;
      return { ...next, metadata: managedFields.length === 0 ? metadata : { ...metadata, managedFields } };
    },
  };
}

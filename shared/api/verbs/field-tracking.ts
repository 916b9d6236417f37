/** managedFields on ordinary writes: the writer of a request owns what it changes. */
import { NODES_GROUP } from '../../domain/access/node-restriction.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { fieldManagerFault, managerFromUserAgent, trackUpdate, type Writer } from '../../kube/patch/managed-fields.ts';
import * as status from '../../kube/status.ts';
import { formatTime } from '../../kube/time.ts';
import { invalidValue } from '../../kube/validation/causes.ts';
import type { JsonObject } from '../../kube/wire/json-value.ts';
import { storedAs } from '../kinds/registry.ts';
import { apiVersionOf, type Call, schemaFor } from '../request/call.ts';
import type { ResourceStorage } from '../storage/resource-storage.ts';
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

/** Fields that a write to this (sub)resource leaves as they are, whatever the body says. */
export function untouchedBy(descriptor: ResourceDescriptor, subresource: string): readonly (readonly string[])[] {
  if (subresource === 'status') return [['spec']];
  return descriptor.subresources.some((each) => each.name === 'status') ? [['status']] : [];
}

/**
 * What a write has to say of its writer. Nothing where managedFields are not kept, and nothing of the status that nodes
 * post about themselves and their pods: nobody else applies that, and it would be half of what a report costs.
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
        live: live as JsonObject | undefined,
        next: next as unknown as JsonObject,
        writer: { ...writer, apiVersion: apiVersionOf(stored) },
        ignored,
      });
      const { managedFields: _replaced, ...metadata } = next.metadata;
      return { ...next, metadata: managedFields.length === 0 ? metadata : { ...metadata, managedFields } };
    },
  };
}

/** VolumeAttachment (pkg/apis/storage/validation/validation.go). */
import type { Cause } from '../status.ts';
import type { KubeObject } from '../types.ts';
import { immutable, invalidValue, required, tooLong } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { byteLength, subdomainComplaints, subdomainName } from './names.ts';

/** Longest name of a driver. */
const ATTACHER_BYTES_MAX = 63;

type Json = Record<string, unknown>;
const record = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function validateAttacher(attacher: string): Cause[] {
  if (attacher === '') return [required('spec.attacher')];
  const causes: Cause[] = [];
  if (byteLength(attacher) > ATTACHER_BYTES_MAX) causes.push(tooLong('spec.attacher', ATTACHER_BYTES_MAX));
  for (const complaint of subdomainComplaints(attacher.toLowerCase())) {
    causes.push(invalidValue('spec.attacher', attacher, complaint));
  }
  return causes;
}

export function validateVolumeAttachment(attachment: KubeObject, old: KubeObject | undefined): Cause[] {
  const causes = validateObjectMetadata(attachment, old, { namespaced: false, name: subdomainName });
  const spec = record(attachment.spec);
  if (old !== undefined) return [...causes, ...immutable('spec', spec, old.spec)];
  causes.push(...validateAttacher(text(spec['attacher'])));
  const nodeName = text(spec['nodeName']);
  if (nodeName === '') causes.push(required('spec.nodeName'));
  else {
    for (const complaint of subdomainComplaints(nodeName))
      causes.push(invalidValue('spec.nodeName', nodeName, complaint));
  }
  const source = record(spec['source']);
  const inline = source['inlineVolumeSpec'] !== undefined;
  const persistent = source['persistentVolumeName'];
  if (inline && persistent !== undefined) {
    causes.push(
      invalidValue('spec.source', source, 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'),
    );
  } else if (!inline && text(persistent) === '') {
    causes.push(required('spec.source', 'must specify one of inlineVolumeSpec and persistentVolumeName'));
  }
  return causes;
}

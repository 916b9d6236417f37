/** VolumeAttachment (pkg/apis/storage/validation/validation.go). */

import { forbiddenField, immutable, invalidValue, required, tooLong } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  byteLength,
  subdomainErrors,
  subdomainName,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type { KubeVolumeAttachment, VolumeAttachmentSource, VolumeError } from '../types.ts';

/** Longest name of a driver. */
const ATTACHER_BYTES_MAX = 63;

const SOURCE_TEXT = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';

/** v1 validates names a second time, after all other fields, so an empty name has two causes. */
const misnamed = (field: string, name: string): Cause[] =>
  subdomainErrors(name.toLowerCase()).map((error) => invalidValue(field, name, error));

function validateSource(source: VolumeAttachmentSource): Cause[] {
  const inline = source.inlineVolumeSpec !== undefined;
  const persistent = source.persistentVolumeName;
  if (inline && persistent !== undefined) return [forbiddenField('spec.source', SOURCE_TEXT)];
  if (!inline && persistent === undefined) return [required('spec.source', SOURCE_TEXT)];
  return persistent === '' && !inline
    ? [required('spec.source.persistentVolumeName', 'must specify non empty persistentVolumeName')]
    : [];
}

const MESSAGE_BYTES_MAX = 1_024;
/** Upstream names this limit in the message, and compares with the one above. */
const NAMED_BYTES_MAX = 262_144;

function validateError(error: VolumeError | undefined, name: string): Cause[] {
  const { message = '', errorCode = 0 } = error ?? {};
  return [
    ...(byteLength(message) > MESSAGE_BYTES_MAX ? [tooLong(`status.${name}.message`, NAMED_BYTES_MAX)] : []),
    ...(errorCode < 0
      ? [invalidValue(`status.${name}.errorCode`, errorCode, 'must be between 0 and 2147483647, inclusive')]
      : []),
  ];
}

export function validateVolumeAttachment(
  attachment: KubeVolumeAttachment,
  old: KubeVolumeAttachment | undefined,
): Cause[] {
  const causes = validateObjectMetadata(attachment, old, { namespaced: false, name: subdomainName });
  const spec = attachment.spec ?? {};
  if (old !== undefined) {
    const { attachError, detachError } = attachment.status ?? {};
    causes.push(...validateError(attachError, 'attachError'), ...validateError(detachError, 'detachError'));
    return [...causes, ...immutable('spec', spec, old.spec)];
  }
  const { attacher = '', nodeName = '', source = {} } = spec;
  const persistent = source.persistentVolumeName;
  if (attacher === '') causes.push(required('spec.attacher'));
  causes.push(...validateSource(source));
  if (nodeName === '') causes.push(required('spec.nodeName'));
  else {
    for (const error of subdomainErrors(nodeName)) causes.push(invalidValue('spec.nodeName', nodeName, error));
  }
  if (byteLength(attacher) > ATTACHER_BYTES_MAX) causes.push(tooLong('spec.attacher', ATTACHER_BYTES_MAX));
  causes.push(...misnamed('spec.attacher', attacher));
  if (persistent !== undefined) causes.push(...misnamed('spec.source.persistentVolumeName', persistent));
  return causes;
}

/**
 * The operating system of a pod, and fields that only the other one has (pkg/apis/core/validation/validation.go:
 * validateOS, validateLinux, validateWindows). A pod without `spec.os` may have all of them.
 */
import { forbiddenField, notSupported, required } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import type { PodSpec } from '../types.ts';
import { linuxFields, securityContexts } from './linux-fields.ts';

const OPERATING_SYSTEMS = ['linux', 'windows'];

export function validateOs(spec: PodSpec): Cause[] {
  if (spec.os === undefined) return [];
  const { name = '' } = spec.os;
  if (name === '') return [required('spec.os.name', 'cannot be empty')];
  if (!OPERATING_SYSTEMS.includes(name)) return [notSupported('spec.os', name, OPERATING_SYSTEMS)];
  if (name === 'windows')
    return linuxFields(spec).map((field) => forbiddenField(field, 'cannot be set for a windows pod'));
  const contexts = [['spec.securityContext', spec.securityContext] as const, ...securityContexts(spec)];
  return contexts
    .filter(([, context]) => context?.windowsOptions !== undefined)
    .map(([path]) => forbiddenField(`${path}.windowsOptions`, 'windows options cannot be set for a linux pod'));
}

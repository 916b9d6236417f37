import type { KindStorage } from '../../api/kind-storage.ts';
import { reportingStorage } from '../roles/storage.ts';
import { admissionKinds } from './serve.ts';

/** Each write is reported to the policies in memory. */
export const admissionPolicyStorages: readonly KindStorage[] = admissionKinds.map((kind) => [
  kind,
  (descriptor, { plain, admissionPolicies }) => reportingStorage(plain(descriptor), admissionPolicies),
]);

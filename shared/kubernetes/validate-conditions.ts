/** metav1.Condition (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateConditions). */

import { duplicate, invalidValue, notSupported, required, tooLong } from './causes.ts';
import type { Cause } from './status.ts';
import { byteLength, formatText, qualifiedNameErrors } from './validate-metadata.ts';

export const CONDITION_STATUSES = ['False', 'True', 'Unknown'];
const REASON_BYTES_MAX = 1_024;
const MESSAGE_BYTES_MAX = 32_768;
const REASON_TEXT = formatText(
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
  '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?',
  'my_name',
  'MY_NAME',
  'MyName',
  'ReasonA,ReasonB',
  'ReasonA:ReasonB',
);

interface Condition {
  readonly type?: string;
  readonly status?: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime?: string | null;
  readonly reason?: string;
  readonly message?: string;
}

export function validateConditions(conditions: readonly Condition[], field: string): Cause[] {
  const seen = new Set<string>();
  return conditions.flatMap((condition, index) => {
    const { type = '', status = '', observedGeneration = 0, lastTransitionTime, reason = '', message = '' } = condition;
    const path = `${field}[${index}]`;
    const causes = seen.has(type) ? [duplicate(`${path}.type`, type)] : [];
    seen.add(type);
    for (const error of qualifiedNameErrors(type)) causes.push(invalidValue(`${path}.type`, type, error));
    if (!CONDITION_STATUSES.includes(status)) causes.push(notSupported(`${path}.status`, status, CONDITION_STATUSES));
    if (observedGeneration < 0) {
      const why = 'must be greater than or equal to zero';
      causes.push(invalidValue(`${path}.observedGeneration`, observedGeneration, why));
    }
    if (!lastTransitionTime) causes.push(required(`${path}.lastTransitionTime`, 'must be set'));
    if (reason === '') causes.push(required(`${path}.reason`, 'must be set'));
    else {
      if (!/^[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason)) {
        causes.push(invalidValue(`${path}.reason`, reason, REASON_TEXT));
      }
      if (byteLength(reason) > REASON_BYTES_MAX) causes.push(tooLong(`${path}.reason`, REASON_BYTES_MAX));
    }
    if (byteLength(message) > MESSAGE_BYTES_MAX) causes.push(tooLong(`${path}.message`, MESSAGE_BYTES_MAX));
    return causes;
  });
}

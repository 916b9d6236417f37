/** How long a token of an account may be asked for. Source: pkg/apis/authentication/validation/validation.go. */

import { invalidValue } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';

export const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;

export function validateTokenSeconds(field: string, seconds: number): Cause[] {
  if (seconds >= TOKEN_SECONDS_MIN && seconds <= TOKEN_SECONDS_MAX) return [];
  const bound = seconds < TOKEN_SECONDS_MIN ? 'less than 10 minutes' : 'larger than 2^32 seconds';
  return [invalidValue(field, seconds, `may not specify a duration ${bound}`)];
}

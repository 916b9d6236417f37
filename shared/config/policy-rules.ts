/** Types of the rules of a policy. */
import type * as z from 'zod/mini';
import type { Policy } from '../fleet/policy.ts';

/** One fault of a policy. */
export interface PolicyFault {
  /** Name of the policy field, or '' for a fault of the whole document. */
  readonly field: string;
  /** The invalid value; for a relation, the value of `field`. */
  readonly value: unknown;
  /** The rule of the field, in words. */
  readonly rule: string;
  /** The second field of a relation between two fields. */
  readonly other?: string;
  /** `file:line`, when the policy came from a file. */
  readonly at?: string;
}

export interface FieldRule<Value> {
  readonly schema: z.ZodMiniType<Value>;
  readonly rule: string;
}

/** Relations between two fields. Checked only if each field is valid by itself. */
export interface Relation {
  readonly field: keyof Policy;
  readonly other: keyof Policy;
  readonly rule: string;
  readonly holds: (policy: Policy) => boolean;
}

/** The parts of Kubernetes objects that rules read and write, in their JSON form. */

/** No kind allows a longer name (apimachinery validation, IsDNS1123Subdomain). Characters. */
export const NAME_LENGTH_MAX = 253;

export type { ConditionStatus, NodeCondition, Taint, TaintEffect, Toleration } from '../kinds/generated/types.ts';

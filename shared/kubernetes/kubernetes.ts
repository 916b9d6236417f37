/** The parts of Kubernetes objects that rules read and write, in their JSON form. */

/** No kind allows a longer name (apimachinery validation, IsDNS1123Subdomain). Characters. */
export const NAME_LENGTH_MAX = 253;

export type TaintEffect = 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';

export interface Taint {
  key: string;
  value?: string;
  effect: TaintEffect;
  /** RFC 3339, only on NoExecute. */
  timeAdded?: string;
}

export interface Toleration {
  key?: string;
  operator?: 'Exists' | 'Equal' | 'Lt' | 'Gt';
  value?: string;
  effect?: TaintEffect;
  tolerationSeconds?: number;
}

export type ConditionStatus = 'True' | 'False' | 'Unknown';

export interface NodeCondition {
  type: string;
  status: ConditionStatus;
  lastHeartbeatTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
}

/**
 * The pressures of this node. The status loop and the eviction loop both measure, and both read the same state: a
 * measurement more changes nothing.
 */
import type { KubePod } from '../../shared/kinds/types.ts';
import type { AgentConfig } from '../config.ts';
import type { MachineUse } from '../ports/machine.ts';
import {
  type EvictionSettings,
  NO_PRESSURE,
  type Observations,
  observe,
  observed,
  type PodsMemory,
  type PressureState,
  type Threshold,
  thresholdsOf,
  underPressure,
} from '../rules/eviction-signals.ts';
import { admitUnderPressure } from '../rules/eviction-texts.ts';
import { PRESSURE_TYPES, type PressureType } from '../rules/node-conditions.ts';
import type { Admission } from '../rules/pod-admission.ts';

export interface Measured {
  readonly observations: Observations;
  /** Thresholds that require an eviction now. */
  readonly due: readonly Threshold[];
}

export class NodePressure {
  readonly thresholds: readonly Threshold[];
  readonly #transitionMs: number;
  readonly #podsMemory: () => PodsMemory | undefined;
  #state: PressureState = NO_PRESSURE;

  /** @param podsMemory undefined without a limit on all pods together */
  constructor(
    settings: EvictionSettings & Pick<AgentConfig, 'evictionPressureTransitionPeriodMs'>,
    podsMemory: () => PodsMemory | undefined,
  ) {
    this.#podsMemory = podsMemory;
    this.thresholds = thresholdsOf(settings);
    this.#transitionMs = settings.evictionPressureTransitionPeriodMs;
  }

  /** @param nowMs monotonic milliseconds */
  measure(use: MachineUse, memoryBytes: number, nowMs: number): Measured {
    const observations = observe(use, memoryBytes, this.#podsMemory());
    this.#state = observed(this.#state, this.thresholds, observations, nowMs);
    return { observations, due: this.#state.unresolved };
  }

  /** @param nowMs monotonic milliseconds */
  isUnder(type: PressureType, nowMs: number): boolean {
    return underPressure(type, this.#state.sightings, nowMs, this.#transitionMs);
  }

  /** Whether a new pod may start under the current pressures. */
  admit(pod: KubePod, nowMs: number): Admission {
    return admitUnderPressure(pod, this.current(nowMs));
  }

  /** @param nowMs monotonic milliseconds */
  current(nowMs: number): readonly PressureType[] {
    return PRESSURE_TYPES.filter((type) => this.isUnder(type, nowMs));
  }
}

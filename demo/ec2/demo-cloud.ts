import type { CloudWorld, InstanceStateChange } from './cloud-world.ts';

/** The EC2 of a demonstration, for its machines and its commands: on loopback beside functions, or in this process. */
export interface DemoCloud {
  /** `http://127.0.0.1:port`; absent: it answers in this process only. */
  readonly endpoint?: string;
  readonly world: CloudWorld;
  /** Calls the listener for every change of state, at its time. */
  subscribe(listener: (change: InstanceStateChange) => void): void;
  /** After every change of the world: stores it and reports state changes. */
  changed(): void;
  /** Every answer is this error from now on; null ends it. */
  fail(trouble: string | null): void;
  readonly trouble: string | null;
}

import type { Admission } from '../../rules/pod-admission.ts';
import { SHUTDOWN_REFUSAL } from '../../rules/shutdown-status.ts';

/** Whether the machine shuts down. GracefulShutdown sets it, and the loops read it. */
export class ShutdownPhase {
  isShuttingDown = false;

  /** Rejects every pod during a shutdown. */
  admit(): Admission {
    return this.isShuttingDown ? { kind: 'refused', ...SHUTDOWN_REFUSAL } : { kind: 'admitted' };
  }
}

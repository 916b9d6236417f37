/** A service in memory, behind the port that the service of Windows implements. */
import type { PreshutdownService } from '../../agent/ports/preshutdown-service.ts';

export class MemoryService implements PreshutdownService {
  readonly name: string;
  timeoutMs = 180_000;
  /** Windows stores no more than this. Milliseconds. */
  timeoutMaxMs = Number.POSITIVE_INFINITY;
  order: readonly string[] = [];
  dependsOn: readonly string[] = [];
  limitMs: number | undefined;
  ends: number[] = [];
  readonly #preshutdown = Promise.withResolvers<void>();
  readonly preshutdown = this.#preshutdown.promise;

  constructor(name = 'kubelet') {
    this.name = name;
  }

  preshutdownTimeoutMs(): number {
    return this.timeoutMs;
  }
  setPreshutdownTimeout(timeoutMs: number): void {
    this.timeoutMs = Math.min(timeoutMs, this.timeoutMaxMs);
  }
  dependencies(): readonly string[] {
    return this.dependsOn;
  }
  readOrder(): readonly string[] {
    return this.order;
  }
  writeOrder(order: readonly string[]): void {
    this.order = order;
  }
  allowPreshutdown(limitMs: number): void {
    this.limitMs = limitMs;
  }
  async end(exitCode: number): Promise<void> {
    this.ends.push(exitCode);
  }

  /** The machine shuts down. */
  shutDown(): void {
    this.#preshutdown.resolve();
  }
}

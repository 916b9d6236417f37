import type { KubeObject } from '../../kinds/types.ts';

/**
 * What the caller makes of the stored object; it may throw a StatusError. `old` is undefined when nothing is stored.
 */
export type Transform = (old: KubeObject) => KubeObject | Promise<KubeObject>;

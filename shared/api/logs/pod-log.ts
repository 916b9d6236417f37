import type { LogOptions } from '../../kinds/pods/log-request.ts';
import type { KubePod } from '../../kinds/types.ts';

/** Query parameter with the id of the stored request. */
export const LOG_PARAMETER = 'nodekeeper-log';

/** An authorized and valid request for the log of one container. */
export interface PodLog {
  readonly pod: KubePod;
  readonly nodeName: string;
  readonly container: string;
  readonly options: LogOptions;
}

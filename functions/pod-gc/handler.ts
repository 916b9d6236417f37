import { tickHandler } from '../../shared/aws/wake-up.ts';
import { composePodGc } from './compose.ts';

const { policy, tick } = composePodGc(process.env);

export const handler = tickHandler(policy.podGcPeriodSeconds, tick);

import { tickHandler } from '../../shared/aws/wake-up.ts';
import { composeScheduler } from './compose.ts';

const { policy, tick } = composeScheduler(process.env);

export const handler = tickHandler(policy.nodeMonitorPeriodSeconds, tick);

import { tickHandler } from '../../shared/aws/tick-handler.ts';
import { composeScheduler } from './compose.ts';

const { policy, tick } = composeScheduler(process.env);

export const handler = tickHandler(policy.nodeMonitorPeriodSeconds, tick);

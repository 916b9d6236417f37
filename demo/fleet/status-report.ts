/** A simulated machine reads its Node and reports its status. */
import { eventName, eventRequest } from '../../agent/rules/event-request.ts';
import { nodePath } from '../../agent/rules/lease.ts';
import { nodeAnswer } from '../../agent/rules/node-answers.ts';
import { conditionOf } from '../../agent/rules/node-conditions.ts';
import { nodeStatusPatch } from '../../agent/rules/node-patch.ts';
import { nodeChanged, reportDue } from '../../agent/rules/status-report.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { adoptNode, DONE, failed, forgetNode, type MachineContext, type Step } from './machine-state.ts';
import { computedNode } from './node-object.ts';

export async function readNode(context: MachineContext): Promise<Step> {
  const found = await context.send({ method: 'GET', path: nodePath(context.identity.name) });
  const read = nodeAnswer(found, () => 0);
  if (read.kind === 'missing') return forgetNode(context);
  if (read.kind === 'failed') return failed(context, 'reading the Node', found);
  adoptNode(context, read.node);
  return DONE;
}

/** Reads the Node when it may have changed or a report is due, and writes the status where the agent would. */
export async function reportStatusIfDue(context: MachineContext): Promise<Step> {
  const { identity, state, clock, random } = context;
  const isReportDue = dueReport(context, { changed: false, fraction: () => 0 }) !== undefined;
  if (!isReportDue && !state.mustLook && clock.nowMs() < state.lookDueAtMs) return DONE;
  if (state.freshNode === undefined) {
    const step = await readNode(context);
    if (step.kind !== 'done') return step;
  }
  const found = state.freshNode;
  state.freshNode = undefined;
  if (found === undefined) return DONE;
  const computed = computedNode(identity, found, clock.nowMs());
  const changed = nodeChanged(found, computed);
  const due = dueReport(context, { changed, fraction: () => random.fraction() });
  if (due !== undefined) {
    const step = await writeStatus(context, nodeStatusPatch(found, computed) ?? {}, due.delayMs);
    if (step.kind !== 'done') return step;
    await reportReady(context, found);
  }
  state.mustLook = false;
  return DONE;
}

const dueReport = (
  { state, settings, clock }: MachineContext,
  input: { readonly changed: boolean; readonly fraction: () => number },
) =>
  reportDue(state.report, {
    ...input,
    nowMs: clock.nowMs(),
    reportFrequencyMs: settings.statusIntervalSeconds * 1_000,
  });

/** As a kubelet, when its node was not ready. An event that is lost is of no consequence. */
async function reportReady({ identity, clock, send }: MachineContext, before: KubeNode): Promise<void> {
  const was = conditionOf(before.status?.conditions, 'Ready');
  if (was === undefined || was.status === 'True') return;
  const nowMs = Math.floor(clock.nowMs());
  await send(
    eventRequest(
      {
        name: eventName(identity.name, nowMs, 0),
        subject: { kind: 'Node', namespace: '', name: identity.name, uid: before.metadata.uid ?? '' },
        event: { type: 'Normal', reason: 'NodeReady', message: `Node ${identity.name} status is now: NodeReady` },
        firstAtMs: nowMs,
        lastAtMs: nowMs,
        count: 1,
        isCreated: false,
      },
      identity.name,
    ),
  );
}

async function writeStatus(context: MachineContext, body: unknown, delayMs: number): Promise<Step> {
  const { identity, state, clock, counters, send } = context;
  const nowMs = clock.nowMs();
  const posted = await send({
    method: 'PATCH',
    path: `${nodePath(identity.name)}/status`,
    body,
    contentType: 'application/strategic-merge-patch+json',
  });
  const written = nodeAnswer(posted, () => 0);
  if (written.kind === 'missing') return forgetNode(context);
  if (written.kind === 'failed') return failed(context, 'posting status', posted);
  state.report = { lastReportAtMs: nowMs, delayMs };
  counters.statusPosts += 1;
  return DONE;
}

/**
 * Heartbeats through a relay (docs/relay.md). A relay may delay and drop them. It cannot keep a dead machine alive for
 * longer than the token of a heartbeat is valid, and it cannot keep a live machine from its second way.
 *
 * Faults of relays do not end calm: the other laws hold for relayed machines while relays fail.
 */
import { BOUND_TOKEN_LIFE_SECONDS, NODE_CLOCK_TOLERANCE_SECONDS } from '../../shared/access/node-token.ts';
import { policyOf } from '../../shared/fleet/nodes/node-profile.ts';
import { EFFECT_MS, effectMs, type Law, type LawContext, seconds } from './law.ts';
import { TURN_MAX_MS } from './shares.ts';
import type { TrueNode } from './truth.ts';

/** The times of a token are whole seconds. Milliseconds. */
const TOKEN_PRECISION_MS = 1_000;
/** The last moment of a heartbeat after its machine was switched off. Milliseconds. */
const HELD_MAX_MS = (BOUND_TOKEN_LIFE_SECONDS + NODE_CLOCK_TOLERANCE_SECONDS) * 1_000 + TOKEN_PRECISION_MS;
/** By how much a wait for the next heartbeat is longer than the interval: its random part. */
const INTERVAL_SHARE_MAX = 1.05;
/**
 * How long a machine waits for its relay, and then for a direct request at most. Milliseconds. Source: docs/relay.md.
 */
const RELAY_WAIT_MS = 5_000;
const DIRECT_WAIT_MS = 10_000;

export function relaysOnlyDelay(context: LawContext): Law {
  const { truth, nowMs, most, machine, calmSinceMs, clockSlackMs, isPoisoned, fail } = context;

  /**
   * What a machine waits for before its heartbeat is stored: its relay, a direct request while such requests hang, and
   * its turn while another identity is greedy.
   */
  function waitsMs(sinceMs: number): number {
    const hangs = context.plan.last('waysHang');
    const mayHang = hangs !== undefined && hangs.untilMs + RELAY_WAIT_MS >= sinceMs;
    const greed = context.plan.last('costlyRequests');
    const turnMs = greed !== undefined && greed.untilMs >= sinceMs ? TURN_MAX_MS.heartbeat : 0;
    return RELAY_WAIT_MS + turnMs + (mayHang ? DIRECT_WAIT_MS : 0);
  }

  const intervalMs = ({ profile }: TrueNode): number =>
    1_000 * most((policy) => policyOf(policy, profile).beatIntervalSeconds);

  function failIfUnheard(node: TrueNode, calmMs: number): void {
    const real = machine(node.name);
    if (real?.isRelayed !== true || !real.isOn || isPoisoned(node.name)) return;
    const fromMs = Math.max(node.lastHeartbeatAtMs, calmMs, real.sinceMs, real.lastCutMs);
    // A machine that has just started, has created its Node again, or changed its profile may have any interval before
    // it.
    const longestMs = 1_000 * most(({ beatIntervalSeconds }) => beatIntervalSeconds);
    const isSteady =
      fromMs === node.lastHeartbeatAtMs &&
      fromMs > node.createdAtMs + longestMs &&
      node.profileChangedAtMs === undefined;
    const waitMs = (isSteady ? intervalMs(node) : 2 * longestMs) * INTERVAL_SHARE_MAX + waitsMs(fromMs) + EFFECT_MS;
    const silentMs = nowMs() - fromMs;
    if (silentMs <= waitMs) return;
    const message = `no heartbeat of ${node.name} was stored for ${seconds(silentMs)}, although it is on and has two ways`;
    fail({ law: 'relays', subjects: [node.name], message });
  }

  return {
    name: 'relays',
    onHappened(happened) {
      if (happened.kind !== 'heard') return;
      const { name } = happened.node;
      const real = machine(name);
      // A status of a poisoned machine may be written in its name.
      if (real === undefined || real.isOn || isPoisoned(name)) return;
      const offMs = nowMs() - real.sinceMs;
      if (offMs <= HELD_MAX_MS + clockSlackMs(real.sinceMs) + effectMs(context, real.sinceMs)) return;
      const message = `a heartbeat of ${name} was stored ${seconds(offMs)} after the machine was switched off`;
      fail({ law: 'relays', subjects: [name], message });
    },
    onMoment() {
      const calmMs = calmSinceMs();
      if (calmMs === undefined) return;
      for (const node of truth.nodes.values()) failIfUnheard(node, calmMs);
    },
  };
}

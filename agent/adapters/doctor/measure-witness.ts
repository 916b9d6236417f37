/** What `nodekeeper-agent doctor` measures for the witnesses of a site. It changes nothing, and never rejects. */
import { createServer } from 'node:net';
import type { AgentConfig, WitnessConfig } from '../../config.ts';
import type { WitnessReading } from '../../rules/doctor-witness.ts';
import { listenOn } from '../relay/relay-server.ts';
import { joinSite } from '../site/join-site.ts';
import { probeWitness } from '../site/witness.ts';

export async function readWitness({
  heartbeatEndpoint: endpoint,
  heartbeatCertificateAuthority: certificateAuthority,
  nodeName,
  witness,
}: Pick<AgentConfig, 'heartbeatEndpoint' | 'heartbeatCertificateAuthority' | 'nodeName' | 'witness'>): Promise<
  WitnessReading | undefined
> {
  if (endpoint === undefined || witness === undefined) return undefined;
  const join = joinSite({ endpoint, certificateAuthority });
  const [port, joining] = await Promise.all([
    readPort(witness, nodeName),
    // Without a beat the relay knows no name for the connection.
    join({ received() {}, closed() {} }, new AbortController().signal),
  ]);
  if (joining.kind === 'joined') await joining.line.close();
  return { port, relay: joining.kind };
}

async function readPort(witness: WitnessConfig, node: string): Promise<WitnessReading['port']> {
  // Stryker disable next-line StringLiteral: Linux connects to all of them as to loopback
  const address = ['', '0.0.0.0', '::'].includes(witness.address) ? '127.0.0.1' : witness.address;
  if (await probeWitness({ node, address, port: witness.port })) return { kind: 'answers' };
  const server = createServer();
  try {
    await listenOn(server, witness);
    return { kind: 'free' };
  } catch (error) {
    const { code, message } = error as Error & { readonly code: string };
    return { kind: 'failed', code, message };
  } finally {
    server.close();
  }
}

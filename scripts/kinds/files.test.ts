import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { KUBERNETES_MINOR, KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import { differingFiles, generatedFiles } from './files.ts';

const META = `package v1

// +structType=atomic
type OwnerReference struct {
	Name string \`json:"name" protobuf:"bytes,3,opt,name=name"\`
}

type ObjectMeta struct {
	Name string \`json:"name,omitempty" protobuf:"bytes,1,opt,name=name"\`
	CreationTimestamp Time \`json:"creationTimestamp,omitempty,omitzero" protobuf:"bytes,8,opt,name=creationTimestamp"\`
	// +listType=map
	// +listMapKey=name
	OwnerReferences []OwnerReference \`json:"ownerReferences,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,13,rep,name=ownerReferences"\`
}
`;
const COORDINATION = `package v1

type Lease struct {
	metav1.TypeMeta \`json:",inline"\`
	metav1.ObjectMeta \`json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"\`
}
`;
const CORE = `package v1

// Hue of a flag.
// +enum
type Hue string

const (
	// Of the sea.
	HueBlue Hue = "deep blue"
	HueRed Hue = "Red" // Of fire.
	HueNone Hue = ""
)

type Cloth struct {
	// +default="silk"
	Weave string \`json:"weave,omitempty" protobuf:"bytes,2,opt,name=weave"\`
}

type Flag struct {
	metav1.TypeMeta \`json:",inline"\`
	// +optional
	metav1.ObjectMeta \`json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"\`
	Cloth \`json:",inline" protobuf:"bytes,5,opt,name=cloth"\`
	// +listType=set
	Hues []Hue \`json:"hues" protobuf:"bytes,2,rep,name=hues"\`
	// When it was raised.
	// +required
	Raised *metav1.Time \`json:"raised,omitempty" protobuf:"bytes,3,opt,name=raised"\`
	Sizes map[Hue]resource.Quantity \`json:"sizes,omitempty" protobuf:"bytes,4,rep,name=sizes"\`
	Port intstr.IntOrString \`json:"port" protobuf:"bytes,6,opt,name=port"\`
	Lining Cloth \`json:"lining,omitempty" patchStrategy:"retainKeys" protobuf:"bytes,7,opt,name=lining"\`
	Secret string \`json:"secret,omitempty" protobuf:"bytes,8,opt,name=secret"\`
	Hidden string \`json:"-"\`
}
`;

const filesOf = (core: string, goMod = '\tk8s.io/apimachinery v0.7.2\n', leftOut = {}): ReadonlyMap<string, string> => {
  const texts = new Map([
    ['api/go.mod', goMod],
    ['api/core/v1/types.go', core],
    ['api/core/v1/register.go', 'const GroupName = ""'],
    ['api/coordination/v1/types.go', COORDINATION],
    ['api/coordination/v1/register.go', 'const GroupName = "coordination.k8s.io"'],
    ['apimachinery/pkg/apis/meta/v1/types.go', META],
  ]);
  return generatedFiles((path) => texts.get(path) ?? '', {
    roots: ['core/v1.Flag'],
    typed: ['core/v1.Flag'],
    leftOut,
  });
};

it('writes what tags and markers say of each field, and the release of the sources', () => {
  const files = filesOf(CORE, undefined, { 'core/v1.Flag.secret': 'not kept' });
  expect(files.get('shared/kinds/generated/type-table.ts')).toContain(`
core/v1.Cloth: 2 weave string default(silk)
core/v1.Flag: kind, 1 metadata+ meta/v1.ObjectMeta, 5 = Cloth, 2 hues+! *$Hue set, 3 raised?! time, 4 sizes %quantity,
 6 port?! intOrString, 7 lining+ Cloth patch(retainKeys)
core/v1.Hue: string Red|deep blue
`);
  expect(files.get('shared/kinds/generated/lease-table.ts')).toContain(`
coordination/v1.Lease: kind coordination.k8s.io, 1 metadata+ meta/v1.ObjectMeta
meta/v1.ObjectMeta: 1 name string, 8 creationTimestamp? time, 13 ownerReferences *OwnerReference map(name) merge(name)
meta/v1.OwnerReference: atomic, 3 name+! string
`);
  expect(files.get('shared/kinds/generated/types.ts')).toContain(`
export type Cloth = {
  weave?: string;
};

export interface KubeFlag extends KubeObject, Cloth {
  hues?: string[];
  raised?: string;
  sizes?: Record<string, string>;
  port?: IntOrString;
  lining?: Cloth;
}
`);
  expect(files.get('shared/kinds/generated/version.ts')).toContain("KUBERNETES_VERSION = 'v1.7.2'");
});

it('names the files that differ from the sources', () => {
  const written = filesOf(CORE);
  const read = (path: string) => written.get(path);
  expect(differingFiles(filesOf(CORE), read)).toEqual([]);
  expect(differingFiles(filesOf(CORE.replace('bytes,3', 'bytes,9')), read)).toEqual([
    'shared/kinds/generated/type-table.ts',
  ]);
  expect(differingFiles(filesOf(CORE.replace('"raised,', '"lifted,')), read)).toEqual([
    'shared/kinds/generated/type-table.ts',
    'shared/kinds/generated/types.ts',
  ]);
  expect(differingFiles(filesOf(CORE), () => undefined)).toHaveLength(written.size);
});

it('refuses sources between releases, and names that they lack', () => {
  expect(() => filesOf(CORE, 'k8s.io/apimachinery v0.0.0-20260101000000-abcdef012345')).toThrow(/no release/);
  expect(() => filesOf('package v1')).toThrow('api/core/v1/types.go has no struct Flag');
  expect(() => filesOf(CORE, undefined, { 'core/v1.Flag.pole': 'none' })).toThrow(
    'not in the sources: core/v1.Flag.pole',
  );
});

it.each([
  ['docs/kubectl.md', `version 1.${KUBERNETES_MINOR}`],
  ['docs/clients.md', `Kubernetes 1.${KUBERNETES_MINOR}`],
  ['CHANGELOG.md', `The API of Kubernetes 1.${KUBERNETES_MINOR} `],
  ['docs/agent.md', `API ${KUBERNETES_VERSION}-nodekeeper`],
])('%s names the served version', (page, words) => {
  expect(readFileSync(page, 'utf8')).toContain(words);
});

// Point clouds, scenes and meshes of wandb.Object3D: turned by dragging, nearer and farther by the wheel.

import {
  AmbientLight,
  Box3,
  BufferGeometry,
  Color,
  DirectionalLight,
  DoubleSide,
  Float32BufferAttribute,
  Group,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  MeshStandardMaterial,
  PerspectiveCamera,
  Points,
  PointsMaterial,
  Scene,
  Sphere,
  WebGLRenderer,
  type Object3D,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";
import { OBJLoader } from "three/addons/loaders/OBJLoader.js";
import { STLLoader } from "three/addons/loaders/STLLoader.js";
import { serve, type Look } from "./frame";

interface Content {
  bytes: ArrayBuffer;
  /** How the file's name ends: pts.json, obj, gltf, glb, stl. */
  format: string;
}

interface CloudScene {
  points?: number[][];
  boxes?: { corners: number[][]; label?: string; color?: number[] }[];
  vectors?: { start: number[]; end: number[] }[];
}

// W&B's fourteen categories, 1 to 14, begin anew with ours.
const CATEGORIES = 14;
// Of the 28 lines between the corners of a box, an edge has three that are parallel to it and as long.
const PARALLEL = 4;

let stop = () => {};

serve<Content>(async (box, content, look) => {
  stop();
  const renderer = new WebGLRenderer({ antialias: true, alpha: true });
  renderer.setPixelRatio(devicePixelRatio);
  box.replaceChildren(renderer.domElement);
  const scene = new Scene();
  scene.add(new AmbientLight(0xffffff, 1.2), await read(content, look));
  const bounds = new Box3().setFromObject(scene).getBoundingSphere(new Sphere());
  if (!(bounds.radius > 0)) throw new Error("There is nothing in this file to draw.");
  const camera = new PerspectiveCamera(45, 1, bounds.radius / 100, bounds.radius * 100);
  // Up is z, as in the data of lidars.
  camera.up.set(0, 0, 1);
  camera.position.copy(bounds.center).add({ x: bounds.radius * 1.6, y: bounds.radius * 1.6, z: bounds.radius * 1.2 });
  const lamp = new DirectionalLight(0xffffff, 2);
  camera.add(lamp);
  scene.add(camera);
  const controls = new OrbitControls(camera, renderer.domElement);
  controls.target.copy(bounds.center);
  const paint = () => renderer.render(scene, camera);
  const fit = () => {
    camera.aspect = innerWidth / Math.max(1, innerHeight);
    camera.updateProjectionMatrix();
    renderer.setSize(innerWidth, innerHeight);
    paint();
  };
  controls.addEventListener("change", paint);
  controls.update();
  addEventListener("resize", fit);
  stop = () => {
    removeEventListener("resize", fit);
    controls.dispose();
    renderer.dispose();
  };
  fit();
});

async function read({ bytes, format }: Content, look: Look): Promise<Object3D> {
  const skin = new MeshStandardMaterial({ color: look.accent, side: DoubleSide, flatShading: true });
  if (format === "pts.json") return cloud(JSON.parse(text(bytes)) as number[][] | CloudScene, look);
  if (format === "stl") return new Mesh(new STLLoader().parse(bytes), skin);
  if (format === "obj") return skinned(new OBJLoader().parse(text(bytes)), skin);
  if (format === "glb" || format === "gltf") return (await new GLTFLoader().parseAsync(bytes, "")).scene;
  throw new Error(`Files of the kind “${format}” are not drawn.`);
}

function text(bytes: ArrayBuffer): string {
  return new TextDecoder().decode(bytes);
}

function skinned(group: Group, skin: MeshStandardMaterial): Group {
  group.traverse((part) => {
    if (part instanceof Mesh) part.material = skin;
  });
  return group;
}

function cloud(content: number[][] | CloudScene, look: Look): Group {
  const whole = new Group();
  const { points = [], boxes = [], vectors = [] } = Array.isArray(content) ? { points: content } : content;
  if (points.length) whole.add(dots(points, look));
  for (const { corners, color } of boxes) {
    whole.add(lines(edgesOf(corners), color ? new Color(`rgb(${color.slice(0, 3).map(Number).join()})`) : new Color(look.accent)));
  }
  if (vectors.length) whole.add(lines(vectors.flatMap(({ start, end }) => [start, end]), new Color(look.text)));
  return whole;
}

/** Rows of x y z, and after them a category or red, green and blue. */
function dots(points: number[][], look: Look): Points {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new Float32BufferAttribute(points.flatMap((row) => row.slice(0, 3).map(Number)), 3));
  const width = points[0]!.length;
  const material = new PointsMaterial({ size: 2.5, sizeAttenuation: false, color: look.accent });
  if (width === 4 || width === 6) {
    const palette = look.colours.map((colour) => new Color(colour));
    const colours = points.flatMap((row) => {
      const colour = width === 6 ? new Color(`rgb(${row.slice(3, 6).map((part) => Math.round(Number(part))).join()})`) : palette[((row[3]! - 1) % CATEGORIES) % palette.length]!;
      return [colour.r, colour.g, colour.b];
    });
    geometry.setAttribute("color", new Float32BufferAttribute(colours, 3));
    material.vertexColors = true;
    material.color = new Color(0xffffff);
  }
  return new Points(geometry, material);
}

function lines(ends: number[][], colour: Color): LineSegments {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new Float32BufferAttribute(ends.flat().map(Number), 3));
  return new LineSegments(geometry, new LineBasicMaterial({ color: colour }));
}

/** People list the corners of a box in any order. */
function edgesOf(corners: number[][]): number[][] {
  const alike = new Map<string, number[][]>();
  corners.forEach((corner, place) => {
    for (const other of corners.slice(place + 1)) {
      const way = corner.map((value, axis) => Number((other[axis]! - value).toPrecision(5)));
      const turn = (way.find((part) => part !== 0) ?? 0) < 0 ? -1 : 1;
      const name = way.map((part) => part * turn + 0).join();
      alike.set(name, [...(alike.get(name) ?? []), corner, other]);
    }
  });
  return [...alike.values()].filter((ends) => ends.length === 2 * PARALLEL).flat();
}

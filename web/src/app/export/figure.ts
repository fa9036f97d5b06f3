// A drawing of the page as a file: SVG that needs no style sheet, or PNG.

import { shortText } from "../../numbers/escape";
import { fileName, save } from "./save";

const SVG = "http://www.w3.org/2000/svg";
// Properties that style sheets give to parts of drawings.
const PROPERTIES = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "font-variant-numeric", "visibility", "display"];
// Pixels of a PNG for each of the page.
const SCALE = 3;
// The side of a mark of a legend, and the room up to its text.
const KEY = 12;
const KEY_ROOM = 18;

export function saveSvg(host: HTMLElement, label: string): void {
  const text = new XMLSerializer().serializeToString(standalone(host, label));
  save(`${fileName(label)}.svg`, new Blob([`<?xml version="1.0" encoding="UTF-8"?>\n${text}\n`], { type: "image/svg+xml" }));
}

export async function savePng(host: HTMLElement, label: string): Promise<void> {
  const svg = standalone(host, label);
  const text = new XMLSerializer().serializeToString(svg);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(SCALE * Number(svg.getAttribute("width")));
    canvas.height = Math.ceil(SCALE * Number(svg.getAttribute("height")));
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) save(`${fileName(label)}.png`, blob);
  } finally {
    URL.revokeObjectURL(url);
  }
}

// Returns all drawings inside an element as one, at their places, on the colour of the page, under
// a title and the legend of their section.
function standalone(host: HTMLElement, title: string): SVGSVGElement {
  const place = host.getBoundingClientRect();
  const head = heading(host, title, place.width);
  const frame = new DOMRect(place.left, place.top - head.height, place.width, place.height + head.height);
  const outer = document.createElementNS(SVG, "svg");
  outer.setAttribute("xmlns", SVG);
  outer.setAttribute("width", String(Math.ceil(frame.width)));
  outer.setAttribute("height", String(Math.ceil(frame.height)));
  outer.setAttribute("viewBox", `0 0 ${Math.ceil(frame.width)} ${Math.ceil(frame.height)}`);
  const paper = document.createElementNS(SVG, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  outer.append(definitions(), paper, ...head.parts);
  for (const svg of host.querySelectorAll<SVGSVGElement>("svg")) if (!svg.parentElement?.closest("svg")) outer.append(placed(svg, frame));
  for (const canvas of host.querySelectorAll("canvas")) outer.append(picture(canvas, frame));
  return outer;
}

// The title, and the keys of the legend in as many lines as they need.
function heading(host: HTMLElement, title: string, width: number): { parts: Element[]; height: number } {
  const { fontFamily } = getComputedStyle(host);
  const measure = document.createElement("canvas").getContext("2d")!;
  const parts: Element[] = [];
  const write = (text: string, x: number, y: number, font: { size: number; weight: number }): number => {
    measure.font = `${font.weight} ${font.size}px ${fontFamily}`;
    const characters = Math.floor(((width - x) / measure.measureText(text).width) * text.length);
    const shown = characters < text.length ? shortText(text, Math.max(characters, 2)) : text;
    parts.push(drawn("text", { x, y, "font-family": fontFamily.replaceAll('"', "'"), "font-size": font.size, "font-weight": font.weight, fill: getComputedStyle(host).color }, shown));
    return measure.measureText(shown).width;
  };
  write(title, 0, 15, { size: 14, weight: 600 });
  let [x, y] = [0, 36];
  const items = host.closest(".card, section")?.querySelectorAll(".legend li") ?? [];
  for (const item of items) {
    const text = item.textContent;
    measure.font = `400 12px ${fontFamily}`;
    if (x > 0 && x + KEY_ROOM + measure.measureText(text).width > width) [x, y] = [0, y + 18];
    parts.push(keyOf(item.querySelector(".key")!, x, y - 10));
    x += KEY_ROOM + write(text, x + KEY_ROOM, y, { size: 12, weight: 400 }) + 16;
  }
  return { parts, height: items.length > 0 ? y + 10 : 24 };
}

// The mark of a legend, which the style sheet of the page makes.
function keyOf(key: Element, x: number, y: number): Element {
  const { backgroundColor: fill } = getComputedStyle(key);
  if (key.classList.contains("point")) return drawn("circle", { cx: x + KEY / 2, cy: y + KEY / 2, r: 4, fill });
  return drawn("rect", { x, y, width: KEY, height: KEY, fill: key.classList.contains("hatched") ? "url(#hatch)" : fill });
}

function drawn(name: string, attributes: Record<string, string | number>, text = ""): Element {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.textContent = text;
  return element;
}

function placed(svg: SVGSVGElement, frame: DOMRect): SVGSVGElement {
  const box = svg.getBoundingClientRect();
  const copy = styled(svg) as SVGSVGElement;
  copy.setAttribute("x", String(box.left - frame.left));
  copy.setAttribute("y", String(box.top - frame.top));
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  copy.setAttribute("overflow", "visible");
  return copy;
}

// A copy without classes, whose style is in its attributes.
function styled(element: Element): Element {
  const copy = element.cloneNode(true) as Element;
  const [from, to] = [[element, ...element.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  to.forEach((part, i) => {
    const style = getComputedStyle(from[i]!);
    for (const property of PROPERTIES) {
      const value = style.getPropertyValue(property);
      if (value) part.setAttribute(property, value.replace(/url\("[^"]*#/, 'url("#').replaceAll('"', property === "font-family" ? "'" : ""));
    }
    part.removeAttribute("class");
    part.removeAttribute("style");
  });
  for (const part of [...copy.querySelectorAll("style")]) part.remove();
  return copy;
}

function definitions(): Element {
  const defs = document.createElementNS(SVG, "defs");
  const pattern = document.getElementById("hatch");
  if (pattern) defs.append(styled(pattern));
  return defs;
}

function picture(canvas: HTMLCanvasElement, frame: DOMRect): Element {
  const box = canvas.getBoundingClientRect();
  const image = document.createElementNS(SVG, "image");
  const place = { x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height, href: canvas.toDataURL("image/png") };
  for (const [name, value] of Object.entries(place)) image.setAttribute(name, String(value));
  image.setAttribute("style", "image-rendering: pixelated");
  return image;
}

// Shows a picture at any size, with boxes around a passage. Boxes are in pixels of the picture, and are
// placed in hundredths of it, so that they stand where they belong at every size.
"use strict";
(() => {
	const figure = document.getElementById("picture");
	const frame = figure.querySelector(".frame");
	const sheet = figure.querySelector(".sheet");
	const image = sheet.querySelector("img");
	const numbers = figure.dataset.boxes.split(" ").map(Number);
	const boxes = [];
	for (let i = 0; i + 3 < numbers.length; i += 4) boxes.push(numbers.slice(i, i + 4));

	// setWidth makes the picture so many pixels wide, and shows what is in the middle of the passage.
	function setWidth(width) {
		const scale = Math.min(Math.max(width, 50), 16 * image.naturalWidth) / image.naturalWidth;
		sheet.style.width = scale * image.naturalWidth + "px";
		const [left, top, right, bottom] = extent();
		frame.scrollLeft = scale * (left + right) / 2 - frame.clientWidth / 2;
		frame.scrollTop = scale * (top + bottom) / 2 - frame.clientHeight / 2;
	}

	// extent is the box around all boxes.
	function extent() {
		const all = (pick, of) => of(...boxes.map((box) => box[pick]));
		return [all(0, Math.min), all(1, Math.min), all(2, Math.max), all(3, Math.max)];
	}

	// The passage takes half of the frame, if that is no more than four times its size.
	function crop() {
		const [left, top, right, bottom] = extent();
		const scale = Math.min(frame.clientWidth / 2 / (right - left || 1), frame.clientHeight / 2 / (bottom - top || 1), 4);
		setWidth(scale * image.naturalWidth);
	}

	const sizes = {
		crop,
		whole: () => setWidth(Math.min(frame.clientWidth, frame.clientHeight * image.naturalWidth / image.naturalHeight)),
		larger: () => setWidth(sheet.clientWidth * 1.5),
		smaller: () => setWidth(sheet.clientWidth / 1.5),
	};

	function start() {
		const share = (n, of) => 100 * n / of + "%";
		for (const [left, top, right, bottom] of boxes) {
			const mark = document.createElement("span");
			mark.className = "box";
			mark.setAttribute("aria-hidden", "true"); // the text of the picture says what stands there
			mark.style.left = share(left, image.naturalWidth);
			mark.style.top = share(top, image.naturalHeight);
			mark.style.width = share(right - left, image.naturalWidth);
			mark.style.height = share(bottom - top, image.naturalHeight);
			sheet.append(mark);
		}
		for (const button of figure.querySelectorAll("button")) {
			button.hidden = false;
			button.addEventListener("click", () => sizes[button.dataset.size]());
		}
		crop();
	}
	if (image.complete && image.naturalWidth) start();
	else image.addEventListener("load", start);
})();
